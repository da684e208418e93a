package canary

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStepAside: no thread of the canary's process is left on the server's CPU.
func TestStepAside(t *testing.T) {
	_, others := CPUs()
	var all unix.CPUSet
	before := runtime.GOMAXPROCS(0)
	if err := errors.Join(unix.SchedGetaffinity(0, &all), StepAside()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		runtime.GOMAXPROCS(before)
		if err := move(&all); err != nil {
			t.Error(err)
		}
	}()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(id, &set); err == nil && (set.Count() != 1 || !set.IsSet(others)) {
			t.Errorf("thread %d may run on %d CPUs, expected %d alone", id, set.Count(), others)
		}
	}
}
