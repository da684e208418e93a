package evloop

import (
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRealTime: the thread of a loop that is to go first is a real-time one of the lowest
// priority, threads that it starts are not, and other loops are as they were.
func TestRealTime(t *testing.T) {
	for _, first := range []bool{false, true} {
		found := scheduled(t, Config{Name: "first", CPU: -1, RealTime: first, Logger: quiet()}, Poll{})
		if first && found.Policy == unix.SCHED_NORMAL {
			t.Skip("the process may have no real-time thread (CAP_SYS_NICE)")
		}
		if want := first; (found.Policy == unix.SCHED_RR) != want || first && (found.Priority != 1 || found.Flags&unix.SCHED_FLAG_RESET_ON_FORK == 0) {
			t.Errorf("asked for %v: policy %d, priority %d, flags %#x", first, found.Policy, found.Priority, found.Flags)
		}
	}
}

// scheduled is how the kernel schedules the thread of such a loop.
func scheduled(t *testing.T, c Config, p Poll) (found *unix.SchedAttr) {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	l.SetPoll(p)
	var running sync.WaitGroup
	running.Go(l.Run)
	on(l, func() { found, err = unix.SchedGetAttr(0, 0) })
	l.Stop()
	running.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestGoesBefore: a thread that sleeps asks for short slices, where the kernel knows them, and
// keeps the nice value of the process, for a lower one costs it rate. One that never sleeps
// is an ordinary one.
func TestGoesBefore(t *testing.T) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if before.Policy != unix.SCHED_NORMAL {
		t.Skipf("the test runs in scheduling policy %d", before.Policy)
	}
	for _, always := range []bool{false, true} {
		found := scheduled(t, Config{Name: "before", CPU: -1, Logger: quiet()}, Poll{Always: always})
		if resets := found.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0; found.Policy != unix.SCHED_NORMAL || found.Nice != before.Nice || resets == always {
			t.Errorf("a thread that never sleeps: %v; found %+v, expected nice %d", always, *found, before.Nice)
		}
		if want := uint64(beforeSlice); before.Runtime != 0 && (found.Runtime == want) == always { // Runtime is 0 before Linux 6.12
			t.Errorf("a thread that never sleeps: %v; found slices of %d ns; short ones have %d", always, found.Runtime, want)
		}
	}
}

// TestGoesAsItMay: a thread that goes before others already, because somebody has given the
// process that right, does not give it up.
func TestGoesAsItMay(t *testing.T) {
	for _, given := range []unix.SchedAttr{{Policy: unix.SCHED_NORMAL, Nice: -5}, {Policy: unix.SCHED_NORMAL, Nice: 5}, {Policy: unix.SCHED_RR, Priority: 1}} {
		found := make(chan *unix.SchedAttr)
		go func() {
			runtime.LockOSThread() // not unlocked: the thread ends
			if unix.SchedSetAttr(0, &given, 0) != nil {
				found <- nil // the process may not
				return
			}
			if err := goBefore(); err != nil {
				t.Error(err)
			}
			now, _ := unix.SchedGetAttr(0, 0)
			found <- now
		}()
		if now := <-found; now != nil && (now.Policy != given.Policy || now.Nice != given.Nice || now.Priority != given.Priority) {
			t.Errorf("found %+v, expected %+v as before", *now, given)
		}
	}
}
