package canary

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// CPUs are where the server runs, and where everybody else does: with who troubles it at
// the lowest priority there, what is measured is what the server does for whom.
var CPUs = sync.OnceValues(func() (server, others int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 0, 0
	}
	var all []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	return all[0], all[len(all)-1]
})

// processors are those of Go's scheduler: with one for each CPU that is left, which is one,
// the canary's thread would wait for whatever goroutine has it.
const processors = 4

// StepAside leaves the server's CPU to it, with all threads of this process: when Go's
// scheduler takes the processor of the canary's thread, another thread gives it back, and
// that one must not wait for the server.
func StepAside() error {
	runtime.GOMAXPROCS(processors)
	_, cpu := CPUs()
	var set unix.CPUSet
	set.Set(cpu)
	return move(&set)
}

// move gives all threads of this process the CPUs of a set.
func move(set *unix.CPUSet) error {
	moved := map[string]bool{}
	for { // until there is no new one: threads have the CPUs of those that made them
		threads, err := os.ReadDir("/proc/self/task")
		before := len(moved)
		for _, t := range threads {
			if id, e := strconv.Atoi(t.Name()); e == nil && !moved[t.Name()] {
				moved[t.Name()] = true
				if e := unix.SchedSetaffinity(id, set); !errors.Is(e, unix.ESRCH) {
					err = errors.Join(err, e)
				}
			}
		}
		if err != nil || len(moved) == before {
			return err
		}
	}
}

// Pinned is a command that runs another on one CPU.
func Pinned(cpu int) []string { return []string{"taskset", "-c", strconv.Itoa(cpu)} }
