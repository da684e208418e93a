package pshift

import (
	"math/rand/v2"

	"lunar/scheduler"
	"lunar/scheduler/pshift"
	"lunar/scripts/sim/kernel"
)

// server serves one I/O at a time; a service takes 0.8 to 1.2 of the mean.
type server struct {
	run        *run
	id         int
	rand       *rand.Rand
	dispatcher *scheduler.Dispatcher
	current    *scheduler.Task // nil if idle
	served     int64           // in the interval
	busy       int64           // ns of service begun in the interval
}

func newServer(r *run, id int) *server {
	return &server{
		run: r, id: id, rand: kernel.NewRand(r.setup.Seed, uint64(id)),
		dispatcher: scheduler.NewDispatcher(scheduler.ReservedFirst, scheduler.NoPool, nil),
	}
}

// capacity is what the server can still serve in a period of which the given
// intervals are left, by its rate while it was busy: an idle server is no
// slow one.
func (s *server) capacity(left int64) int64 {
	interval := s.run.setup.Period / s.run.setup.Intervals
	served := s.run.setup.IOPS * interval / second
	if s.busy > 0 {
		served = int64(float64(s.served) * float64(interval) / float64(s.busy))
	}
	return pshift.EstimateCapacity(served, left)
}

// serve starts the next I/O if the server is idle and the dispatcher has one.
func (s *server) serve(now int64) {
	if s.current != nil {
		return
	}
	s.current = s.dispatcher.Next(now)
	if s.current == nil {
		return
	}
	p := s.current.Owner.(*pair)
	p.issue(now, s.current.Grant())
	p.feed(now)
	mean := second / s.run.setup.IOPS
	took := mean*4/5 + s.rand.Int64N(mean*2/5+1)
	s.served++
	s.busy += took
	s.run.kernel.At(now+took, kernel.Completion, s, 0)
}

// Fire ends the I/O in service.
func (s *server) Fire(now int64, _ int32) {
	task := s.current
	s.current = nil
	s.dispatcher.Done(task, now)
	task.Owner.(*pair).complete(now, task)
	s.serve(now)
}
