package evloop

import "testing"

func TestSpinnerLearnsWhatPays(t *testing.T) {
	s := spinner{limit: 50}
	if s.pays(0) {
		t.Error("looks before it has learnt anything")
	}
	for range spinFrom {
		s.learn(20)
	}
	if !s.pays(0) || !s.pays(49) {
		t.Error("does not look although work always comes soon")
	}
	if s.pays(50) {
		t.Error("looks longer than the limit")
	}
	for range spinMost {
		s.learn(20)
	}
	for n := 0; s.pays(0); n++ {
		if n > 2 {
			t.Fatal("goes on looking in vain")
		}
		s.learn(1000)
	}
}

func TestSpinnerMixedLoad(t *testing.T) {
	s := spinner{limit: 50}
	for range 100 { // half of the idle times are long: looking does not pay
		s.learn(20)
		s.learn(1000)
		if s.pays(0) {
			t.Fatal("looks although every second look is in vain")
		}
	}
	for range 100 { // one of eight is: it pays
		for range 7 {
			s.learn(20)
		}
		s.learn(1000)
	}
	s.learn(20)
	if !s.pays(0) {
		t.Error("does not look although most looks pay")
	}
}

func TestSpinnerOff(t *testing.T) {
	var s spinner
	for range 100 {
		s.learn(0)
	}
	if s.pays(0) {
		t.Error("looks although it may not")
	}
}
