package evloop

import (
	"sync"

	"lunar/internal/numa"
)

// DefaultWorkers is how many goroutines NewWorkers starts for n <= 0.
const DefaultWorkers = 16

// Job is a call that blocks, and what follows it.
type Job interface {
	Do() // on a worker goroutine
	Task // Run: afterwards, on the loop's thread
}

// Workers is a fixed number of goroutines for calls that block: file operations
// without io_uring, foreign stores. Jobs begin in the order of Submit.
type Workers struct {
	mu struct {
		sync.Mutex
		queue  []submission // a ring: queue[first], count entries
		first  int
		count  int
		closed bool
	}
	more  sync.Cond
	group sync.WaitGroup
}

type submission struct {
	loop *Loop
	job  Job
}

// NewWorkers starts n goroutines, or DefaultWorkers when n <= 0, which run where
// the scheduler likes. Close ends them.
func NewWorkers(n int) *Workers { return NewWorkersOn(n, nil) }

// NewWorkersOn is NewWorkers with each goroutine locked to a thread that may run
// on the given CPUs only: those of one NUMA node. Where the kernel refuses, or
// without CPUs, they run anywhere.
func NewWorkersOn(n int, cpus []int) *Workers {
	if n <= 0 {
		n = DefaultWorkers
	}
	w := &Workers{}
	w.more.L = &w.mu
	for range n {
		w.group.Go(func() { w.start(cpus) })
	}
	return w
}

// Submit queues job for its Do and later Posts it to l for its Run. It never
// waits for a worker; the queue is bounded only by how many jobs the callers own.
// After Close it panics.
func (w *Workers) Submit(l *Loop, job Job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		panic("evloop: Submit to closed workers")
	}
	if w.mu.count == len(w.mu.queue) {
		w.grow()
	}
	w.mu.queue[(w.mu.first+w.mu.count)%len(w.mu.queue)] = submission{l, job}
	w.mu.count++
	w.more.Signal()
}

// Close ends the goroutines once every submitted job is done. Stop the loops
// afterwards, or the Runs of the last jobs are lost.
func (w *Workers) Close() {
	w.mu.Lock()
	w.mu.closed = true
	w.more.Broadcast()
	w.mu.Unlock()
	w.group.Wait()
}

func (w *Workers) grow() {
	queue := make([]submission, max(64, 2*len(w.mu.queue)))
	n := copy(queue, w.mu.queue[w.mu.first:])
	copy(queue[n:], w.mu.queue[:w.mu.first])
	w.mu.queue, w.mu.first = queue, 0
}

func (w *Workers) start(cpus []int) {
	if len(cpus) == 0 {
		w.work()
		return
	}
	numa.OwnThread(func() {
		_ = numa.Pin(cpus...) // a matter of speed only
		w.work()
	})
}

func (w *Workers) work() {
	for {
		s, ok := w.take()
		if !ok {
			return
		}
		s.job.Do()
		s.loop.Post(s.job)
	}
}

// take waits for the oldest submission; it reports false when there will be none.
func (w *Workers) take() (submission, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.mu.count == 0 {
		if w.mu.closed {
			return submission{}, false
		}
		w.more.Wait()
	}
	s := w.mu.queue[w.mu.first]
	w.mu.queue[w.mu.first] = submission{}
	w.mu.first = (w.mu.first + 1) % len(w.mu.queue)
	w.mu.count--
	return s, true
}
