package evloop

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRealTime: the thread of a loop that is to go first is a real-time one of the lowest
// priority, threads that it starts are not, and other loops are as they were.
func TestRealTime(t *testing.T) {
	for _, first := range []bool{false, true} {
		l, err := New(Config{Name: "first", CPU: -1, RealTime: first, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		running.Go(l.Run)
		var found *unix.SchedAttr
		on(l, func() { found, err = unix.SchedGetAttr(0, 0) })
		l.Stop()
		running.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if first && found.Policy == unix.SCHED_NORMAL {
			t.Skip("the process may have no real-time thread (CAP_SYS_NICE)")
		}
		if want := first; (found.Policy == unix.SCHED_RR) != want || first && (found.Priority != 1 || found.Flags&unix.SCHED_FLAG_RESET_ON_FORK == 0) {
			t.Errorf("asked for %v: policy %d, priority %d, flags %#x", first, found.Policy, found.Priority, found.Flags)
		}
	}
}
