package numa

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// OwnThread runs f on a thread of its own, which ends with f, and returns then. What
// f makes of the thread, such as its name and its CPUs, nothing else inherits.
//
// It is never the first thread of the process: that one the Go runtime does not end,
// and the kernel shows its name and CPUs as those of the process.
func OwnThread(f func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // not unlocked: the thread ends with its goroutine
		if !onFirstThread() {
			f()
			return
		}
		defer runtime.UnlockOSThread()
		OwnThread(f) // elsewhere, because this goroutine occupies the first thread
	}()
	<-ended
}

func onFirstThread() bool { return unix.Gettid() == unix.Getpid() }

// Pin binds the calling thread to one or some CPUs: that of OwnThread, for the Go
// runtime would reuse another one.
func Pin(cpus ...int) error {
	if onFirstThread() {
		return errors.New("pin the first thread of the process: expected one that ends")
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
		if !set.IsSet(cpu) {
			return fmt.Errorf("pin to CPU %d: expected 0 to %d", cpu, len(set)*64-1)
		}
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to CPU %s (allowed are %v): %w", strings.Trim(fmt.Sprint(cpus), "[]"), Allowed(), err)
	}
	return nil
}

// Allowed returns the CPUs that the process may run on, ascending: its cpuset and
// affinity at the start of the process, whatever Pin did since.
func Allowed() []int { return append([]int(nil), allowedAtStart...) }

// allowedAtStart is read before any thread can be pinned.
var allowedAtStart = affinity()

func affinity() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}
