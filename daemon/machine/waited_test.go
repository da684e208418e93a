package machine

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
)

// TestWaited: a thread that shares its only CPU with another one waits for it.
func TestWaited(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("this kernel does not tell how long threads wait: %v", err)
	}
	threads := make(chan int)
	var end atomic.Bool
	defer end.Store(true)
	for range 2 {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends, with its CPU set
			var one unix.CPUSet
			one.Set(0)
			_ = unix.SchedSetaffinity(0, &one) // where it may not, it waits for other reasons
			threads <- unix.Gettid()
			for !end.Load() { // which keeps the CPU
			}
		}()
	}
	first, second := <-threads, <-threads
	eventually.Holds(t, "both have waited", func() bool { return Waited(first) > time.Millisecond && Waited(second) > time.Millisecond })
	if n := Waited(0); n != 0 {
		t.Errorf("no thread has waited for %v", n)
	}
}

// TestStolen: there is a figure for each CPU that this process may use.
func TestStolen(t *testing.T) {
	all := Stolen()
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(mine) * 64 {
		if _, told := all[cpu]; mine.IsSet(cpu) && !told {
			t.Errorf("found %v, expected a figure for CPU %d", all, cpu)
		}
	}
}
