package main

import (
	"sync"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// station is a device of a known speed: every command takes the same time, and
// no more than a given number is finished per second. It serves in order of
// arrival, so that among those who keep something in it all are equal.
type station struct {
	mu      sync.Mutex
	last    int64 // when the last command is done, ns
	gap     int64 // ns from one command's end to the next one's
	overlap int64 // commands under way at once that keep it busy
}

// newStation returns a station that serves rate commands per second, and so
// many at once.
func newStation(rate int64, overlap int) *station {
	return &station{gap: 1e9 / rate, overlap: int64(overlap)}
}

// setRate changes the speed for commands that arrive from now on.
func (s *station) setRate(rate int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gap = 1e9 / rate
}

// arrive returns when a command that comes at now, ns, is done.
func (s *station) arrive(now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, now+(s.overlap-1)*s.gap) + s.gap
	return s.last
}

// throttled is a store behind a station.
type throttled struct {
	backstore.Store
	station *station
}

// Lane implements backstore.Store.
func (t *throttled) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := t.Store.Lane(l)
	if err != nil {
		return nil, err
	}
	lane := &throttledLane{Lane: inner, loop: l, station: t.station}
	lane.timer.Fire = lane.finish
	return lane, nil
}

// throttledLane has done an op when it is submitted, and says so when the
// station would have done it.
type throttledLane struct {
	backstore.Lane
	loop    *evloop.Loop
	station *station
	running []delayed // in order of time
	timer   evloop.Timer
	// The thread may come late to what is due. What follows in the same pass
	// arrives when it would have, so that the device does not lose that time.
	pass, due int64
}

type delayed struct {
	op *backstore.Op
	at int64
}

// TryNow implements backstore.Lane: what moves data takes its time.
func (l *throttledLane) TryNow(op *backstore.Op) bool {
	return op.Kind != backstore.Read && op.Kind != backstore.Write && l.Lane.TryNow(op)
}

// Submit implements backstore.Lane.
func (l *throttledLane) Submit(op *backstore.Op) bool {
	if !l.Lane.TryNow(op) {
		return l.Lane.Submit(op)
	}
	if op.Err != nil || op.Kind != backstore.Read && op.Kind != backstore.Write {
		return true
	}
	at := l.station.arrive(l.now())
	if n := len(l.running); n > 0 {
		at = max(at, l.running[n-1].at)
	}
	l.running = append(l.running, delayed{op, at})
	if !l.timer.Armed() {
		l.loop.ArmAt(&l.timer, at)
	}
	return false
}

// now is the time of what arrives in this pass.
func (l *throttledLane) now() int64 {
	if l.pass == l.loop.Now() {
		return l.due
	}
	return l.loop.Now()
}

// finish ends what is due.
func (l *throttledLane) finish() {
	l.pass, l.due = l.loop.Now(), l.running[0].at
	due := 0
	for due < len(l.running) && l.running[due].at <= l.loop.Now() {
		due++
	}
	ended := append([]delayed(nil), l.running[:due]...)
	l.running = append(l.running[:0], l.running[due:]...)
	if len(l.running) > 0 {
		l.loop.ArmAt(&l.timer, l.running[0].at)
	}
	for _, d := range ended {
		d.op.Done(d.op)
	}
}
