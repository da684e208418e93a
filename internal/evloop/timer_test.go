package evloop

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimersFireInOrder(t *testing.T) {
	l := driven(t, Config{})
	var got []int
	var timers [5]Timer
	for i, after := range []time.Duration{3, 1, 2, 1, -7} {
		timers[i].Fire = func() { got = append(got, i) }
		l.Arm(&timers[i], after*time.Microsecond)
	}
	for len(got) < len(timers) {
		l.pass()
	}
	if want := []int{4, 1, 3, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("order %v, expected %v", got, want)
	}
}

// A timer ends the sleep of an idle loop, not before its time.
func TestTimerWakesTheLoop(t *testing.T) {
	for _, coarse := range []bool{false, true} {
		l := start(t, Config{})
		fired := make(chan int64)
		var due int64
		timer := Timer{Fire: func() { fired <- l.Now() - due }}
		on(l, func() {
			l.poll.coarse = coarse
			due = l.Now() + int64(3*time.Millisecond)
			l.Arm(&timer, 3*time.Millisecond)
		})
		if late := <-fired; late < 0 {
			t.Errorf("coarse %v: fired %v early", coarse, time.Duration(-late))
		}
	}
}

// A timer that arms itself for now does not keep the pass from ending.
func TestRearmInFire(t *testing.T) {
	l := driven(t, Config{})
	fired := 0
	var timer Timer
	timer.Fire = func() {
		fired++
		l.ArmAt(&timer, 0)
	}
	l.Arm(&timer, 0)
	for want := 1; want <= 3; want++ {
		l.pass()
		if fired != want {
			t.Fatalf("fired %d times after %d passes", fired, want)
		}
	}
	l.Disarm(&timer)
	l.Disarm(&timer)
	if timer.Armed() {
		t.Error("armed after Disarm")
	}
}

func TestDisarmByAnotherTimer(t *testing.T) {
	l := driven(t, Config{})
	victim := Timer{Fire: func() { t.Error("a disarmed timer fired") }}
	killer := Timer{Fire: func() { l.Disarm(&victim) }}
	l.Arm(&killer, 0)
	l.Arm(&victim, 0)
	l.pass()
	if victim.Armed() || killer.Armed() {
		t.Error("timers are armed after the pass")
	}
}

// The heap fires the same timers in the same order as a sorted list would.
func TestTimerHeapProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h timerHeap
		var fired []int
		timers := make([]Timer, rapid.IntRange(1, 40).Draw(rt, "timers"))
		for i := range timers {
			timers[i].Fire = func() { fired = append(fired, i) }
		}
		now := int64(0)
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			i := rapid.IntRange(0, len(timers)-1).Draw(rt, "timer")
			switch rapid.IntRange(0, 3).Draw(rt, "action") {
			case 0, 1:
				h.arm(&timers[i], now+rapid.Int64Range(0, 20).Draw(rt, "after"))
			case 2:
				h.disarm(&timers[i])
			case 3:
				now += rapid.Int64Range(0, 10).Draw(rt, "advance")
				want := due(timers, now)
				fired = nil
				if h.fire(now); !slices.Equal(fired, want) {
					rt.Fatalf("at %d fired %v, expected %v", now, fired, want)
				}
			}
		}
	})
}

// due sorts the armed timers whose time has come.
func due(timers []Timer, now int64) []int {
	var list []int
	for i := range timers {
		if timers[i].Armed() && timers[i].at <= now {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int {
		x, y := &timers[a], &timers[b]
		if x.at != y.at {
			return int(x.at - y.at)
		}
		return int(x.seq) - int(y.seq)
	})
	return list
}
