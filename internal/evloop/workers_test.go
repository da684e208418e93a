package evloop

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/numa"
)

type job struct {
	do, run func()
}

func (j *job) Do()  { j.do() }
func (j *job) Run() { j.run() }

func TestJobs(t *testing.T) {
	w := NewWorkers(4)
	l := start(t, Config{Workers: w})
	defer w.Close()
	if l.Workers() != w {
		t.Fatal("the loop has other workers than configured")
	}
	var group sync.WaitGroup
	for range 500 {
		group.Add(1)
		done := false
		w.Submit(l, &job{
			do: func() {
				if l.OnThread() {
					t.Error("Do on the loop's thread")
				}
				done = true
			},
			run: func() {
				if !l.OnThread() || !done {
					t.Errorf("Run on the loop's thread %v, after Do %v", l.OnThread(), done)
				}
				group.Done()
			},
		})
	}
	group.Wait()
}

// One worker does the jobs in the order of Submit, however full the queue is.
func TestJobsAreFIFO(t *testing.T) {
	w := NewWorkers(1)
	l := start(t, Config{})
	var done []int
	for i := range 300 {
		w.Submit(l, &job{do: func() { done = append(done, i) }, run: func() {}})
	}
	w.Close()
	if len(done) != 300 || !slices.IsSorted(done) {
		t.Errorf("did %d jobs, in order %v; expected 300 in order", len(done), slices.IsSorted(done))
	}
}

// As many jobs as workers can block at once, and Submit does not wait for them.
func TestWorkersAreBounded(t *testing.T) {
	w := NewWorkers(0)
	l := start(t, Config{})
	var busy atomic.Int64
	var once sync.Once
	full, release := make(chan struct{}), make(chan struct{})
	for range 3 * DefaultWorkers {
		w.Submit(l, &job{run: func() {}, do: func() {
			n := busy.Add(1)
			if n > DefaultWorkers {
				t.Errorf("%d jobs at once, expected at most %d", n, DefaultWorkers)
			}
			if n == DefaultWorkers {
				once.Do(func() { close(full) })
			}
			<-release
			busy.Add(-1)
		}})
	}
	<-full
	close(release)
	w.Close()
	expectPanic(t, func() { w.Submit(l, &job{}) })
}

func TestWorkersOnRunOnTheirCPUs(t *testing.T) {
	cpu := numa.Allowed()[0]
	w := NewWorkersOn(1, []int{cpu})
	defer w.Close()
	l := start(t, Config{Workers: w})
	var may unix.CPUSet
	done := make(chan struct{})
	w.Submit(l, &job{do: func() { _ = unix.SchedGetaffinity(0, &may) }, run: func() { close(done) }})
	<-done
	if may.Count() != 1 || !may.IsSet(cpu) {
		t.Errorf("the worker may run on %d CPUs, expected CPU %d alone", may.Count(), cpu)
	}
}
