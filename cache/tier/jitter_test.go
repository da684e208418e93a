package tier

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// jitter is a store that ends nothing inside Submit for long, whose operations
// begin late or end late, so that they overlap in every way. The store below does
// all in TryNow.
type jitter struct {
	backstore.Store
	lanes   atomic.Uint64
	running atomic.Int64 // operations
}

// idle reports that nothing is under way: a loop that stops forgets its timers.
func (s *jitter) idle() bool { return s.running.Load() == 0 }

// Lane implements backstore.Store.
func (s *jitter) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := s.Store.Lane(l)
	if err != nil {
		return nil, err
	}
	return &jitterLane{Lane: inner, store: s, loop: l, random: rand.New(rand.NewPCG(*seed, s.lanes.Add(1)))}, nil
}

type jitterLane struct {
	backstore.Lane
	store  *jitter
	loop   *evloop.Loop
	random *rand.Rand
}

// TryNow implements backstore.Lane.
func (l *jitterLane) TryNow(op *backstore.Op) bool { return l.random.IntN(4) == 0 && l.Lane.TryNow(op) }

// Submit implements backstore.Lane.
func (l *jitterLane) Submit(op *backstore.Op) bool {
	do := func() { l.Lane.TryNow(op) }
	first, then := do, func() {}
	switch l.random.IntN(4) {
	case 0:
		do()
		return true
	case 1:
		first, then = then, do
	}
	first()
	timer := &evloop.Timer{Fire: func() {
		then()
		op.Done(op)
		l.store.running.Add(-1)
	}}
	l.store.running.Add(1)
	l.loop.Arm(timer, time.Duration(l.random.IntN(200))*time.Microsecond)
	return false
}
