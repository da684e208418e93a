package evloop

import (
	"runtime"
	"testing"
	"time"

	"lunar/internal/buf"
)

// TestIdleTime: time asleep is idle, time in a task is not.
func TestIdleTime(t *testing.T) {
	const some = 5 * time.Millisecond
	l := start(t, Config{Name: "idle"})
	for l.Stats().Sleeps == 0 {
		runtime.Gosched()
	}
	before := l.Stats()
	time.Sleep(some)
	asleep := l.Stats()
	if found := asleep.Idle - before.Idle; found < some {
		t.Errorf("found %v idle of a loop that slept for %v", found, some)
	}
	on(l, func() { time.Sleep(some) })
	for l.Stats().Sleeps == asleep.Sleeps {
		runtime.Gosched()
	}
	after := l.Stats()
	if busy, was := after.Run-after.Idle, asleep.Run-asleep.Idle; busy < was+some {
		t.Errorf("found %v busy before and %v after a task of %v", was, busy, some)
	}
	if after.Idle > after.Run {
		t.Errorf("found %v idle in %v", after.Idle, after.Run)
	}
}

// TestStatsOfACreatedLoop: before Run there is nothing to count.
func TestStatsOfACreatedLoop(t *testing.T) {
	l := newLoop(t, Config{Name: "created"})
	defer l.Stop()
	if s := l.Stats(); s != (Stats{}) {
		t.Errorf("found %+v", s)
	}
}

// TestPoolStats: what is handed out is counted at the end of a pass.
func TestPoolStats(t *testing.T) {
	l := start(t, Config{Name: "pool", Buffers: 1 << 20})
	var ref *buf.Ref
	on(l, func() { ref = l.Pool().Get(3 * buf.PageSize) })
	for l.Stats().PoolUsed == 0 {
		runtime.Gosched()
	}
	if s := l.Stats(); s.Pool != 1<<20 || s.PoolUsed != 4*buf.PageSize {
		t.Errorf("found %d of %d bytes in use, expected %d", s.PoolUsed, s.Pool, 4*buf.PageSize)
	}
	on(l, func() { ref.Release() })
	for l.Stats().PoolUsed != 0 {
		runtime.Gosched()
	}
}
