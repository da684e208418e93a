package daemon

import (
	"runtime"

	"lunar/conf"
	"lunar/internal/evloop"
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

// controlProcessors are for logins, the collector and other work beside event threads.
const controlProcessors = 2

// spareProcessors gives the Go scheduler more processors than there are CPUs. An event
// thread that comes back from the kernel needs one, and where logins and the collector
// have them all it waits until one of these has used up its 10 ms: the kernel, which
// shares the CPUs out, lets a thread run that wakes up.
func spareProcessors(s *conf.Server) {
	runtime.GOMAXPROCS(runtime.NumCPU() + s.Threads + controlProcessors)
}

// congestionOf is empty for the system's.
func congestionOf(s *conf.Server) string {
	if s.Congestion == conf.SystemCongestion {
		return ""
	}
	return s.Congestion
}
