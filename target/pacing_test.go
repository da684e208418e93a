package target

import (
	"testing"

	"lunar/scheduler"
)

// paced is a pacing of a class whose target is 5 ms, and a task that asks.
func paced(t *testing.T) (*pacing, *task) {
	t.Helper()
	n := &scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 1e6}
	n.Targets[scheduler.High] = 5e6
	p := new(pacing)
	p.follow(nil, NetworkClass{Class: scheduler.High, Network: n})
	return p, new(task)
}

// asks opens a sequence of n bytes at a time and closes it after it took a while.
func (p *pacing) asks(t *task, n uint32, at, took int64) {
	s := sequence{open: true, end: n}
	p.opened(t, &s, at)
	s.next = s.end
	p.closed(t, &s, at+took)
}

// TestPacingWindow: what is asked for stays within the window, if need be by less than all
// that a task wants; what is settled makes room. Who comes later goes behind those who wait.
func TestPacingWindow(t *testing.T) {
	p, first := paced(t)
	window := p.window()
	n := p.admits(first, 10*window)
	if n <= window-leastAsked || n > window {
		t.Fatalf("of 10 windows %d bytes may be asked for, expected a window of %d", n, window)
	}
	s := sequence{open: true, end: uint32(window) / 2}
	p.opened(first, &s, 0)
	if n := p.admits(first, window/2); n != window/2 || first.paced {
		t.Errorf("%d bytes may be asked for, expected the %d that there is room for", n, window/2)
	}
	rest := sequence{open: true, end: uint32(window/2 - leastAsked/2)}
	p.opened(first, &rest, 0)
	if n := p.admits(first, leastAsked); n != 0 || !first.paced {
		t.Errorf("%d bytes may be asked for beyond the window", n)
	}
	second := &task{itt: 1}
	if n := p.admits(second, 512); n != 0 || !second.paced || len(p.waiting) != 2 {
		t.Errorf("%d bytes go before what waits", n)
	}
	p.due = true // no event thread is there to run it
	p.leave(second)
	p.leave(first)
	if p.asked != 0 || first.asked != 0 || first.paced || second.paced || len(p.waiting) != 0 || p.admits(first, window) != window {
		t.Errorf("%d bytes are asked for and %d tasks wait after all have ended", p.asked, len(p.waiting))
	}
}

// TestPacingSmallestWindow: the window never gets so small that nothing may be asked for.
func TestPacingSmallestWindow(t *testing.T) {
	p, task := paced(t)
	for range 64 {
		p.flow.Update(1, 1)
	}
	if n := p.admits(task, 1<<20); n != leastAsked {
		t.Errorf("%d bytes may be asked for with the smallest window, expected %d", n, leastAsked)
	}
}

// TestPacingFollowsDelay: while data come in time the window grows if it is what holds
// writes back; data that come late shrink it, faster in a class that has time.
func TestPacingFollowsDelay(t *testing.T) {
	p, task := paced(t)
	at := int64(0)
	round := func(took int64, bound bool) {
		for was := p.rest; was > 0; was -= 64 << 10 {
			p.bound = p.bound || bound
			at += took
			p.asks(task, 64<<10, at, took)
		}
	}
	first := p.window()
	round(2e6, false)
	if p.window() != first {
		t.Errorf("a window of %d that held nothing back became %d", first, p.window())
	}
	round(2e6, true)
	if p.window() != 2*first {
		t.Errorf("a window of %d became %d without congestion, expected twice that", first, p.window())
	}
	grown := p.window()
	for range 4 {
		round(4e6, true) // later than the shortest by more than the delay, and within the target
	}
	early := grown - p.window()
	p, task = paced(t)
	round(2e6, true)
	p.target = 1e6
	for range 4 {
		round(4e6, true)
	}
	if late := grown - p.window(); early <= 0 || late <= 0 || late >= early {
		t.Errorf("windows of %d gave way by %d in time and by %d when late, expected both, and less when late", grown, early, late)
	}
}

// TestPacingForgetsTasks: a task that ends while it waits leaves no tag, whoever gets that
// next.
func TestPacingForgetsTasks(t *testing.T) {
	p, task := paced(t)
	window := uint32(p.window())
	first := sequence{open: true, end: window}
	p.opened(task, &first, 0)
	_, other := paced(t)
	other.itt = 7
	if p.admits(other, int(window)) > 0 || len(p.waiting) != 1 {
		t.Fatal("more than the window may be asked for")
	}
	p.leave(other)
	if len(p.waiting) > 0 || other.paced {
		t.Errorf("tags %v wait, expected none", p.waiting)
	}
}

// TestPacingOff: nothing is counted.
func TestPacingOff(t *testing.T) {
	p, task := paced(t)
	p.follow(nil, NetworkClass{})
	if p.network != nil || p.told() != (Pacing{}) || task.asked != 0 {
		t.Error("it goes on")
	}
}
