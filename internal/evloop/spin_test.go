package evloop

import (
	"testing"
	"time"
)

// steps gives a spinner idle times, one after the other. The thread is never late.
type steps struct {
	spinner
	now                  int64
	looks, empty, sleeps int
	busy                 int64 // spent looking
}

const tick = 1000 // of the simulated clock: a look takes so long

// idle lets one idle time after the other pass; each ends by something from outside.
func (s *steps) idle(times ...int64) {
	for _, idle := range times {
		s.until(s.now+idle, 0)
	}
}

// until lets the idle time pass until end. Sleeps that the clock ends are late.
func (s *steps) until(end, late int64) {
	s.begin(s.now)
	for s.now < end {
		switch d := int64(s.wait(s.now)); {
		case d < 0:
			s.now = end
		case d == 0:
			s.now += tick
			s.busy += tick
		default:
			s.sleeps++
			s.now = min(end, s.now+d+late)
		}
	}
	looked, vain := s.end(s.now)
	if looked {
		s.looks++
	}
	if vain {
		s.empty++
	}
}

// operation has one of so long a duration under way.
func (s *steps) operation(of *Answers, took, late int64) {
	var a Await
	s.await(&a, of, s.now)
	s.until(s.now+took, late)
	s.answered(&a, s.now)
}

// pays tells whether the spinner looks at once.
func (s *steps) pays() bool {
	s.begin(s.now)
	return s.wait(s.now) == 0
}

const us = 1000

func TestSpinnerLearnsWhatPays(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us}}
	if s.pays() {
		t.Error("looks before it has learnt anything")
	}
	for range spinFrom {
		s.idle(20 * us)
	}
	if !s.pays() || s.wait(s.now+49*us) != 0 {
		t.Error("does not look although work always comes soon")
	}
	if s.wait(s.now+50*us) == 0 {
		t.Error("looks for longer than the limit")
	}
	for range spinMost {
		s.idle(20 * us)
	}
	if s.looks != spinMost || s.empty != 0 {
		t.Errorf("%d looks, %d of them empty, expected %d and none", s.looks, s.empty, spinMost)
	}
	for n := 0; s.pays(); n++ {
		if n > 2 {
			t.Fatal("goes on looking for nothing")
		}
		s.idle(1000 * us)
	}
}

func TestSpinnerMixedLoad(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us}}
	for range 100 { // half of the idle times are long: looking does not pay
		s.idle(20*us, 1000*us)
		if s.pays() {
			t.Fatal("looks although every second look is empty")
		}
	}
	for range 100 { // one of eight is: it pays
		s.idle(20*us, 20*us, 20*us, 20*us, 20*us, 20*us, 20*us, 1000*us)
	}
	s.idle(20 * us)
	if !s.pays() {
		t.Error("does not look although most looks pay")
	}
}

// TestSpinnerBudget: looks in vain take no more than the budget in the long run.
func TestSpinnerBudget(t *testing.T) {
	for _, tt := range []struct {
		budget int
		most   int64 // percent
	}{{0, 100}, {10, 10}, {1, 1}} {
		var l Loop
		l.SetPoll(Poll{Limit: 50 * time.Microsecond, Budget: tt.budget})
		s := steps{spinner: l.spin}
		for range 50_000 {
			s.idle(2*us, 2*us, 2*us, 2*us, 2*us, 2*us, 2*us, 60*us)
		}
		spent := int64(s.empty) * s.limit
		if spent*100 > s.now*tt.most+100*spinAdvance {
			t.Errorf("budget %d %%: %d of %d ns were looked in vain", tt.budget, spent, s.now)
		}
		if tt.budget == 0 && s.empty < 25_000 {
			t.Errorf("without a budget only %d looks were empty", s.empty)
		}
	}
}

func TestSpinnerOff(t *testing.T) {
	var s steps
	var disk Answers
	for range 100 {
		s.idle(0)
		s.operation(&disk, 100*us, 0)
	}
	if s.looks > 0 || s.sleeps > 0 {
		t.Error("looks although it may not")
	}
}

func TestSpinnerAlways(t *testing.T) {
	var l Loop
	l.SetPoll(Poll{Always: true})
	s := steps{spinner: l.spin}
	s.idle(1e6, 1e6)
	if s.wait(s.now+1e9) != 0 {
		t.Error("sleeps although it is to look always")
	}
}

// A thread that waits for a disk sleeps while the answer is not due, then looks, and
// finds it. What the initiator does in between is learnt apart.
func TestSpinnerSleepsUntilTheAnswerIsDue(t *testing.T) {
	for _, tt := range []struct {
		name       string
		took, late int64
		sleeps     bool
	}{
		{"longer than the limit", 200 * us, 15 * us, true},
		{"as short as the clock is late", 40 * us, 25 * us, false},
		{"far longer", 5000 * us, 15 * us, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := steps{spinner: spinner{limit: 50 * us}}
			var disk Answers
			both := func(n int) {
				for i := range n {
					s.operation(&disk, tt.took+int64(i%10)*us, tt.late)
					s.idle(30 * us)
				}
			}
			both(200)
			s.looks, s.empty, s.sleeps, s.busy = 0, 0, 0, 0
			both(100)
			if s.looks < 180 || s.empty > 0 { // one answer in ten comes before it is due
				t.Errorf("%d looks, %d empty, expected one in most of 200 idle times, and none", s.looks, s.empty)
			}
			if tt.sleeps != (s.sleeps >= 100) {
				t.Errorf("%d sleeps until 100 answers were due", s.sleeps)
			}
			if most := int64(100 * (30*us + 50*us)); tt.sleeps && s.busy > most {
				t.Errorf("looked for %d us, expected %d at most", s.busy/us, most/us)
			}
		})
	}
}

// Operations that take as long as they like are waited for asleep.
func TestSpinnerDoesNotLookForTheUnpredictable(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us}}
	var disk Answers
	seed := uint64(1)
	random := func() int64 { // 1 to 10 ms
		seed = seed*6364136223846793005 + 1442695040888963407
		return 1000*us + int64(seed>>33%9000)*us
	}
	for range 100 {
		s.operation(&disk, random(), 0)
	}
	s.looks = 0
	for range 1000 {
		s.operation(&disk, random(), 0)
	}
	if s.looks > 0 {
		t.Errorf("%d looks for answers that come at any time", s.looks)
	}
}

// One device that is slow does not keep the thread from looking for another's answer,
// nor for what comes from outside.
func TestSpinnerBesideASlowDevice(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us}}
	var slow, quick Answers
	slow.soon = 10_000 * us
	var pending Await
	s.await(&pending, &slow, s.now)
	for range 100 {
		s.operation(&quick, 100*us, 0)
		s.idle(30 * us)
	}
	if !quick.pays() {
		t.Error("does not look for the quick device's answers")
	}
}

// Nor does one whose answers come at any time, and which is due first.
func TestSpinnerBesideAnErraticDevice(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us}}
	var erratic, quick Answers
	for range 100 {
		s.operation(&quick, 100*us, 0)
	}
	s.looks = 0
	for range 100 {
		erratic = Answers{soon: 80 * us}
		var pending Await
		s.await(&pending, &erratic, s.now)
		s.operation(&quick, 110*us, 0)
		s.answered(&pending, s.now)
	}
	if s.looks < 50 { // in time it sleeps until just then
		t.Errorf("%d looks for the quick device's 100 answers", s.looks)
	}
}

// TestSpinnerForgetsThatTheClockWasLate: a machine that was loaded once lets the thread
// sleep for short times again.
func TestSpinnerForgetsThatTheClockWasLate(t *testing.T) {
	s := steps{spinner: spinner{limit: 50 * us, late: spinLate}}
	var disk Answers
	for range 1000 {
		s.operation(&disk, 90*us, 0)
	}
	if s.sleeps == 0 {
		t.Error("looks for all of 90 us, as if sleeps still ended late")
	}
}

// The estimate is below nine of ten durations and follows a device that changes.
func TestAnswersFollowTheDevice(t *testing.T) {
	var a Answers
	for _, base := range []int64{100 * us, 400 * us, 60 * us} {
		for i := range 2000 {
			a.took(base + int64(i*7%100)*us) // evenly spread over 100 us
		}
		if early, most := base+3*us, base+25*us; a.soon < early || a.soon > most {
			t.Errorf("durations from %d us on: %d us, expected %d to %d", base/us, a.soon/us, early/us, most/us)
		}
	}
}

// Operations end in any order; the oldest of those left is the next that is due.
func TestAnswersOldest(t *testing.T) {
	a := Answers{soon: 10}
	var ops [3]Await
	for i := range ops {
		a.begin(&ops[i], int64(100*i))
	}
	for _, tt := range []struct {
		ends int
		due  int64
	}{{1, 0}, {0, 200}} {
		a.end(&ops[tt.ends], 1000)
		if got := a.due() - a.soon; got != tt.due {
			t.Errorf("after the end of %d the oldest is of %d, expected %d", tt.ends, got, tt.due)
		}
	}
	if a.end(&ops[2], 1000); a.first != nil || a.last != nil {
		t.Error("something is left after the last end")
	}
}
