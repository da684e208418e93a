package evloop

import (
	"testing"
	"time"
)

// steps gives a spinner idle times, one after the other.
type steps struct {
	spinner
	now          int64
	looked, vain int
}

func (s *steps) idle(times ...int64) {
	for _, idle := range times {
		s.pays(0, s.now)
		s.now += idle
		looked, vain := s.learn(idle, s.now)
		if looked {
			s.looked++
		}
		if vain {
			s.vain++
		}
	}
}

func (s *steps) looks() bool { return s.pays(0, s.now) }

func TestSpinnerLearnsWhatPays(t *testing.T) {
	s := steps{spinner: spinner{limit: 50}}
	if s.looks() {
		t.Error("looks before it has learnt anything")
	}
	for range spinFrom {
		s.idle(20)
	}
	if !s.looks() || !s.pays(49, s.now) {
		t.Error("does not look although work always comes soon")
	}
	if s.pays(50, s.now) {
		t.Error("looks longer than the limit")
	}
	for range spinMost {
		s.idle(20)
	}
	if s.looked != spinMost || s.vain != 0 {
		t.Errorf("%d looks, %d of them in vain, expected %d and none", s.looked, s.vain, spinMost)
	}
	for n := 0; s.looks(); n++ {
		if n > 2 {
			t.Fatal("goes on looking in vain")
		}
		s.idle(1000)
	}
}

func TestSpinnerMixedLoad(t *testing.T) {
	s := steps{spinner: spinner{limit: 50}}
	for range 100 { // half of the idle times are long: looking does not pay
		s.idle(20, 1000)
		if s.looks() {
			t.Fatal("looks although every second look is in vain")
		}
	}
	for range 100 { // one of eight is: it pays
		s.idle(20, 20, 20, 20, 20, 20, 20, 1000)
	}
	s.idle(20)
	if !s.looks() {
		t.Error("does not look although most looks pay")
	}
}

// TestSpinnerBudget: looks in vain take no more than the budget in the long run.
func TestSpinnerBudget(t *testing.T) {
	for _, tt := range []struct {
		budget, most int // percent
	}{{0, 100}, {10, 10}, {1, 1}} {
		var l Loop
		l.SetPoll(Poll{Limit: 50 * time.Microsecond, Budget: tt.budget})
		s := steps{spinner: l.spin}
		for range 200_000 {
			s.idle(2000, 2000, 2000, 2000, 2000, 2000, 2000, 60_000)
		}
		spent := int64(s.vain) * s.limit
		if spent*100 > s.now*int64(tt.most)+100*spinAdvance {
			t.Errorf("budget %d %%: %d of %d ns were looked in vain", tt.budget, spent, s.now)
		}
		if tt.budget == 0 && s.vain < 100_000 {
			t.Errorf("without a budget only %d looks were in vain", s.vain)
		}
	}
}

func TestSpinnerOff(t *testing.T) {
	var s steps
	for range 100 {
		s.idle(0)
	}
	if s.looks() {
		t.Error("looks although it may not")
	}
}

func TestSpinnerAlways(t *testing.T) {
	var l Loop
	l.SetPoll(Poll{Always: true})
	s := steps{spinner: l.spin}
	s.idle(1e9, 1e9)
	if !s.pays(1e9, s.now) {
		t.Error("sleeps although it is to look always")
	}
}
