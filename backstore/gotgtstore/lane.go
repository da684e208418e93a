package gotgtstore

import (
	"fmt"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// lane is one event thread's access to a driver.
type lane struct {
	store   *store
	loop    *evloop.Loop
	counter quiesce.Counter
	idle    *job // list of jobs to reuse
}

// TryNow implements backstore.Lane: a driver may always block.
func (l *lane) TryNow(*backstore.Op) bool { return false }

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	op.Err = backstore.Check(op, l.store.info.Load())
	if op.Err != nil || op.Kind != backstore.Flush && op.Length() == 0 {
		return true
	}
	l.loop.Workers().Submit(l.loop, l.job(op))
	return false
}

// Close implements backstore.Lane.
func (l *lane) Close() { l.store.counters.Remove(&l.counter) }

// job is an op on its way to a worker and back.
type job struct {
	lane *lane
	op   *backstore.Op
	era  quiesce.Era
	next *job
}

func (l *lane) job(op *backstore.Op) *job {
	j := l.idle
	if j == nil {
		j = &job{lane: l}
	} else {
		l.idle = j.next
	}
	j.op, j.era, j.next = op, l.counter.Enter(), nil
	return j
}

// Do implements evloop.Job.
func (j *job) Do() {
	if err := j.lane.store.do(j.op); err != nil {
		j.op.Err = fmt.Errorf("%v at byte %d of %s: %w", j.op.Kind, j.op.Off, j.lane.store.Info().Describe, backstore.Classify(err))
	}
}

// Run implements evloop.Job.
func (j *job) Run() {
	l, op := j.lane, j.op
	l.counter.Exit(j.era)
	j.op, j.next, l.idle = nil, l.idle, j
	op.Done(op)
}
