package main

import (
	"sync"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// station is a device of a known speed that serves in order of arrival.
type station struct {
	speed time.Duration
	mu    sync.Mutex
	reads []time.Duration // how long those take here
	last  int64           // when the last command is done, ns
}

// arrive returns when a command that comes at now, ns, is done.
func (s *station) arrive(now int64, op *backstore.Op) int64 {
	takes := command
	if op.Kind == backstore.Write {
		takes += time.Duration(len(op.Data)) * perByte
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, now) + int64(takes/s.speed)
	if op.Kind == backstore.Read {
		s.reads = append(s.reads, time.Duration(s.last-now))
	}
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
	return &throttledLane{inner, l, t.station}, err
}

// throttledLane does an operation at once, and says so when the station would have.
type throttledLane struct {
	backstore.Lane
	loop    *evloop.Loop
	station *station
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
	timer := &evloop.Timer{Fire: func() { op.Done(op) }}
	l.loop.ArmAt(timer, l.station.arrive(evloop.Monotonic(), op))
	return false
}
