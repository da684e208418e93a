package pshift

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lunar/scheduler/pshift"
)

// handOver is what it costs to hand a part of the work to another thread and to
// wait for it: two switches between nodes, as Tyche measured them.
const handOver = 2 * 5 * time.Microsecond

// meter is an executor that runs the parts one after the other and notes how much
// processor time threads of their own would have saved.
type meter struct {
	saved  time.Duration
	handed int
}

// run implements pshift.Executor.
func (m *meter) run(parts int, work func(part int)) {
	all, longest := time.Duration(0), time.Duration(0)
	for part := range parts {
		start := threadTime()
		work(part)
		took := threadTime() - start
		all, longest = all+took, max(longest, took)
	}
	m.saved += all - longest
	m.handed++
}

// threadTime is the processor time that the calling thread has had: what else the
// machine does is not in it.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0 // there is no such clock: the ratio of two times is then no number and fails
	}
	return time.Duration(t.Nano())
}

// worked is the processor time that work takes.
func worked(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	work()
	return threadTime() - start
}

// amdahl is how much faster a shift is with its work in so many parts, each on a
// thread that has a processor to itself: from the processor time of all of it in
// one, and of what is done one part after the other plus the longest of the parts
// that are done at once. It is the median of pairs of runs.
func amdahl(p *pshift.Instance, budget []int64, parts, times int) (speedup float64, handed int) {
	q := shifted(p, budget, pshift.Options{})
	spent := func(options pshift.Options) time.Duration {
		q.Allocate(budget)
		return worked(func() { q.Shift(options) })
	}
	speedups := make([]float64, times)
	for i := range speedups {
		var m meter
		whole := spent(pshift.Options{})
		split := spent(pshift.Options{Run: m.run, Parts: parts}) - m.saved + time.Duration(m.handed)*handOver
		speedups[i], handed = whole.Seconds()/split.Seconds(), m.handed
	}
	slices.Sort(speedups)
	return speedups[times/2], handed
}
