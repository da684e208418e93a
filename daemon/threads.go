package daemon

import (
	"runtime"

	"lunar/conf"
	"lunar/internal/evloop"
	"lunar/scheduler/batch"
)

// pollOf is how event threads wait for work.
func pollOf(s *conf.Server) evloop.Poll {
	switch s.Poll {
	case conf.PollAlways:
		return evloop.Poll{Always: true}
	case conf.PollAdaptive:
		return evloop.Poll{Limit: s.BusyPoll, Budget: s.PollBudget}
	}
	return evloop.Poll{}
}

// spareProcessors lets the Go scheduler run control work beside event threads that
// never sleep: their CPUs are then shared by the kernel.
func spareProcessors(s *conf.Server) {
	if s.Poll == conf.PollAlways {
		runtime.GOMAXPROCS(max(runtime.NumCPU(), s.Threads) + 2)
	}
}

// batchingOf is how many small requests are worked on together.
func batchingOf(s *conf.Server) *batch.Config {
	return &batch.Config{Mode: s.Batching.Mode, Level: s.Batching.Level, Delay: int64(s.MaxDelay)}
}

// congestionOf is empty for the system's.
func congestionOf(s *conf.Server) string {
	if s.Congestion == conf.SystemCongestion {
		return ""
	}
	return s.Congestion
}
