package haechi

import (
	"lunar/scheduler"
	"lunar/scripts/sim/kernel"
)

// server is the data node: it serves one I/O at a time, in the order of the
// real dispatcher.
type server struct {
	run        *run
	dispatcher *scheduler.Dispatcher
	cost       int64 // ns per I/O
	current    *io   // nil if idle
}

// newDispatcher returns Haechi's: I/Os need a token, of which the pool's are
// bounded. Without QoS they need none.
func (r *run) newDispatcher() *scheduler.Dispatcher {
	mode := scheduler.HardPool
	if !r.setup.QoS {
		mode = scheduler.NoPool
	}
	return scheduler.NewDispatcher(r.setup.Arbitration, mode, r.monitor.Pool)
}

// serve starts the next I/O if the node is idle and the dispatcher has one.
func (s *server) serve(now int64) {
	if s.current != nil {
		return
	}
	task := s.dispatcher.Next(now)
	if task == nil {
		return
	}
	s.current = task.Owner.(*io)
	s.current.client.issue(now, task.Grant())
	s.run.kernel.At(now+s.cost, kernel.Completion, s, 0)
}

// Fire ends the I/O that is served.
func (s *server) Fire(now int64, _ int32) {
	done := s.current
	s.current = nil
	done.client.receive(now, done)
	s.serve(now)
}
