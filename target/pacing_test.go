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

// TestPacingWindow: what is asked for stays within the window, but for one R2T that is
// always possible; what is settled makes room.
func TestPacingWindow(t *testing.T) {
	p, task := paced(t)
	window := p.window()
	if !p.admits(task, 10*window) {
		t.Fatal("the first R2T is not possible")
	}
	s := sequence{open: true, end: uint32(window) / 2}
	p.opened(task, &s, 0)
	if !p.admits(task, window/2) || p.admits(task, window) || !task.paced {
		t.Error("more than the window may be asked for, or less may not")
	}
	p.waiting, task.paced = nil, false
	p.settle(task, int(s.end))
	if p.asked != 0 || task.asked != 0 || !p.admits(task, window) {
		t.Errorf("%d bytes are asked for after all have come", p.asked)
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
	if p.admits(other, int(window)) || len(p.waiting) != 1 {
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
