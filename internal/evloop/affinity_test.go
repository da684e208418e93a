package evloop

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
	"lunar/internal/numa"
	"lunar/internal/numa/numatest"
)

// TestOnlyEventThreadsArePinned: whoever makes event threads, pinned workers and
// threads of the Go runtime, from wherever, no other thread is kept from a CPU.
func TestOnlyEventThreadsArePinned(t *testing.T) {
	allowed := numa.Allowed()
	if len(allowed) == 1 {
		t.Skip("no thread may run on more than one CPU here")
	}
	expectPinned(t, 0, 0)
	var loops []*Loop
	var running sync.WaitGroup
	for range 4 {
		beginOnFirstThread(t, func() {
			l, err := New(Config{Name: "pinned", CPU: allowed[0], Buffers: 1 << 20, RingEntries: 8, Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			loops = append(loops, l)
		})
	}
	expectPinned(t, 0, 0)
	var workers *Workers
	beginOnFirstThread(t, func() {
		for _, l := range loops {
			running.Go(l.Run)
			on(l, func() {})
		}
		workers = NewWorkersOn(2, allowed[:1])
	})
	release := occupyThreads(t, loops)
	expectPinned(t, len(loops), 2)

	release()
	workers.Close()
	for _, l := range loops {
		l.Stop()
	}
	running.Wait()
	expectPinned(t, 0, 0)
}

// beginOnFirstThread runs f on the first thread of the process, where the Go runtime
// mostly goes on with what f starts and waits for.
func beginOnFirstThread(t *testing.T, f func()) {
	numatest.OnFirstThread(t, func() {
		runtime.UnlockOSThread()
		defer runtime.LockOSThread()
		f()
	})
}

// occupyThreads has the Go runtime start threads for calls that block, which loops and
// others make, until release.
func occupyThreads(t *testing.T, loops []*Loop) (release func()) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	occupy := func() {
		for range 5 {
			reading.Go(func() { _, _ = unix.Read(fds[0], make([]byte, 1)) })
		}
	}
	occupy()
	for _, l := range loops {
		on(l, occupy)
	}
	return func() {
		_ = unix.Close(fds[1])
		reading.Wait()
		_ = unix.Close(fds[0])
	}
}

// expectPinned waits until so many event threads and other threads may run on the first
// CPU alone, and on no other one: threads that end go a little later than what they ran.
func expectPinned(t *testing.T, events, others int) {
	t.Helper()
	all := fmt.Sprint(numa.Allowed())
	what := fmt.Sprintf("threads that may run on some CPUs only, expected %d event threads and %d others", events, others)
	eventually.Passes(t, what, func() map[string]int {
		found := map[string]int{}
		for _, th := range numatest.Threads(t) {
			if fmt.Sprint(th.CPUs) != all {
				found[fmt.Sprintf("%s on %v", th.Name, th.CPUs)]++
			}
		}
		return found
	}, func(found map[string]int) bool { return matches(found, events, others) })
}

func matches(found map[string]int, events, others int) bool {
	one := fmt.Sprint(numa.Allowed()[:1])
	n := 0
	for _, count := range found {
		n += count
	}
	return n == events+others && found["pinned on "+one] == events
}
