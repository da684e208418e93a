package numa

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Pin binds the calling thread to one or some CPUs. The goroutine must be locked
// to its thread, and should end with it: the Go runtime would reuse a pinned
// thread.
func Pin(cpus ...int) error {
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
