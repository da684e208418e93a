package evloop

import "sync/atomic"

// Stats counts since the loop began to run.
type Stats struct {
	Passes  uint64 // turns of the loop
	Sleeps  uint64 // blocking waits
	Wakeups uint64 // eventfd writes by Post and Stop
}

// counters keeps what the loop writes apart from what other goroutines write.
type counters struct {
	_       [cacheLine]byte
	passes  atomic.Uint64
	sleeps  atomic.Uint64
	_       [cacheLine]byte
	wakeups atomic.Uint64
	_       [cacheLine]byte
}

// Stats returns the counters; any goroutine may ask.
func (l *Loop) Stats() Stats {
	return Stats{Passes: l.stats.passes.Load(), Sleeps: l.stats.sleeps.Load(), Wakeups: l.stats.wakeups.Load()}
}
