package evloop

import (
	"sync/atomic"
	"time"
)

// Stats counts since the loop began to run.
type Stats struct {
	Thread    int           // of the operating system (gettid(2)); 0: there is none yet
	Passes    uint64        // turns of the loop
	Sleeps    uint64        // blocking waits
	Looks     uint64        // idle times in which it looked for work instead of sleeping, see Poll
	Empty     uint64        // of them, those that ended asleep
	Handovers uint64        // tasks that Post brought
	Wakeups   uint64        // eventfd writes by Post and Stop
	Run       time.Duration // since the loop began to run
	Idle      time.Duration // of it, with nothing to do: asleep, or looking for work; a pass that has not ended counts as idle
	Pool      int           // bytes of the pool
	PoolUsed  int           // of them, those handed out when the last pass ended
}

// counters keeps what the loop writes apart from what other goroutines write.
type counters struct {
	_        [cacheLine]byte
	passes   atomic.Uint64
	sleeps   atomic.Uint64
	looks    atomic.Uint64
	empty    atomic.Uint64
	handed   atomic.Uint64
	began    atomic.Int64 // time, on the clock of Monotonic; 0: not yet
	idleness idleness
	poolUsed atomic.Int64
	_        [cacheLine]byte
	wakeups  atomic.Uint64
	_        [cacheLine]byte
}

// Stats returns the counters; any goroutine may ask.
func (l *Loop) Stats() Stats {
	s := Stats{
		Passes: l.stats.passes.Load(), Sleeps: l.stats.sleeps.Load(), Wakeups: l.stats.wakeups.Load(),
		Looks: l.stats.looks.Load(), Empty: l.stats.empty.Load(), Handovers: l.stats.handed.Load(),
		Thread: int(l.thread.Load()), Pool: l.memory, PoolUsed: int(l.stats.poolUsed.Load()),
	}
	if began := l.stats.began.Load(); began != 0 {
		idleness := l.stats.idleness.Load()
		now := Monotonic() // later than what idleness may refer to
		s.Run, s.Idle = time.Duration(now-began), idle(idleness, now)
	}
	return s
}

// idleness is how long there was nothing to do, in one word, so that it is read
// whole: its last bit says whether the loop is idle now, the others are the
// nanoseconds, less, while it is idle, the time since when.
type idleness struct{ atomic.Int64 }

// idle returns how long there was nothing to do until now.
func idle(word, now int64) time.Duration {
	if word&1 != 0 {
		return time.Duration(word>>1 + now)
	}
	return time.Duration(word >> 1)
}

// idles notes that there is nothing to do from now on.
func (l *Loop) idles(now int64) {
	l.idle = now
	l.spin.begin(now)
	i := &l.stats.idleness
	i.Store((i.Load()>>1-now)<<1 | 1)
}

// works notes that there is something to do again.
func (l *Loop) works() {
	looked, vain := l.spin.end(l.now)
	if looked {
		l.stats.looks.Add(1)
	}
	if vain {
		l.stats.empty.Add(1)
	}
	i := &l.stats.idleness
	i.Store((i.Load()>>1 + l.now) << 1)
	l.idle = 0
}

// countPool notes what of the pool is handed out.
func (l *Loop) countPool() {
	if l.pool == nil {
		return
	}
	if used := int64(l.memory - l.pool.Free()); used != l.stats.poolUsed.Load() {
		l.stats.poolUsed.Store(used)
	}
}
