package scheduler

import "testing"

// machine is an event thread that takes so many ns for each token, and more when it
// wakes up for one.
type machine struct {
	Thread
	now, done, busy int64
}

const wakeUp = 20_000

func (m *machine) seconds(n int, rate, token int64) {
	for range n * 50 { // reports
		m.now += 20e6
		tokens := rate / 50
		work := tokens * token
		if work+tokens*wakeUp < 20e6 {
			work += tokens * wakeUp
		}
		if work > 20e6 {
			tokens, work = 20e6/token, 20e6
		}
		m.done, m.busy = m.done+tokens, m.busy+work
		m.Observe(m.now, m.done, m.busy)
	}
}

// TestThread: what a thread can do is known when it was full, follows the mix of
// commands, and is not taken for less while there is little to do.
func TestThread(t *testing.T) {
	m := &machine{now: 1e9}
	expect := func(what string, capacity int64, full bool) {
		t.Helper()
		s := m.Status("event0")
		if s.Capacity < capacity*98/100 || s.Capacity > capacity*102/100 || s.Full() != full {
			t.Errorf("%s: %+v, expected a capacity of %d, full: %v", what, s, capacity, full)
		}
	}
	m.seconds(3, 10_000, 2500)
	expect("never full", 0, false)
	m.seconds(3, 1e6, 2500)
	expect("full", 400_000, true)
	m.seconds(60, 10_000, 2500)
	expect("little to do", 400_000, false)
	m.seconds(30, 1e6, 5000)
	expect("other commands", 200_000, true)
	m.seconds(2, 280_000, 2500)
	expect("more than it was thought to do", 280_000, false)
	m.now, m.busy = m.now+60e9, m.busy+60e9
	m.seconds(1, 280_000, 2500)
	expect("no rules for a minute, in which it was full", 280_000, false)
	m.done, m.busy = 0, 0
	m.seconds(3, 10_000, 2500)
	expect("counters that begin anew", 280_000, false)
}
