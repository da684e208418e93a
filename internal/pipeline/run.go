package pipeline

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stage is a stage with what it does. Exactly one of Work and Begin is set.
type Stage struct {
	StageConfig
	// Work does it on one of the stage's threads. False: no later stage is to have the block.
	Work func(*Block) (on bool, err error)
	// Begin begins it, and calls done once, from any goroutine, or before it returns.
	Begin func(b *Block, done func(on bool, err error))
}

// Config says how a Runner works.
type Config struct {
	Stages []Stage
	Cores  int // that parallel stages may use together; at least 1
	// Out gets each block that has passed or left the line, and after a failure all others.
	// It must not wait for the line.
	Out func(*Block)
	// Nice has the threads of Work yield to all others of the machine (nice(2) 10).
	Nice bool
	Now  func() int64     // ns; nil: the monotonic clock
	Tick <-chan time.Time // when threads are adapted; nil: each MonitorInterval
}

// Runner is a Line at work. Its methods may be called by any number of goroutines.
type Runner struct {
	Config
	mu      sync.Mutex
	ready   []*sync.Cond // of each stage: it may take a block, or is to look whether it ends
	room    *sync.Cond   // in the first queue
	idle    *sync.Cond   // nobody works, perhaps
	line    *Line
	workers []int // goroutines of each stage
	leaving int   // blocks that Out has
	closed  bool  // no block comes any more
	err     error // the first of all; then no stage takes a block
	ended   sync.WaitGroup
	stop    chan struct{}
}

// Start begins to work. Wait ends it.
func Start(c Config) *Runner {
	began := time.Now()
	if c.Now == nil {
		c.Now = func() int64 { return int64(time.Since(began)) }
	}
	r := &Runner{Config: c, workers: make([]int, len(c.Stages)), stop: make(chan struct{})}
	configs := make([]StageConfig, len(c.Stages))
	for i, s := range c.Stages {
		configs[i] = s.StageConfig
	}
	r.line, r.room, r.idle = NewLine(configs...), sync.NewCond(&r.mu), sync.NewCond(&r.mu)
	for range c.Stages {
		r.ready = append(r.ready, sync.NewCond(&r.mu))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range c.Stages {
		r.staff(i)
	}
	go r.monitor()
	return r
}

// Put gives the line a block, as soon as there is room. After an error the block is still
// the caller's.
func (r *Runner) Put(b *Block) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.err == nil && !r.line.Offer(0, b, r.Now()) {
		r.room.Wait()
	}
	r.ready[0].Signal()
	return r.err
}

// all has everybody look. Otherwise only who is concerned is woken: each waking of a thread
// costs as much as copying some pages.
func (r *Runner) all() {
	for _, c := range r.ready {
		c.Broadcast()
	}
	r.room.Broadcast()
	r.idle.Broadcast()
}

// moved has those look who may go on after a stage has taken a block, or is done with one: it
// has a thread or has room, and so has the stage before, and the next one may have a block.
func (r *Runner) moved(i int) {
	if i > 0 {
		r.ready[i-1].Signal()
	} else {
		r.room.Signal()
	}
	r.ready[i].Signal()
	if i+1 < len(r.ready) {
		r.ready[i+1].Signal()
	}
	if r.closed && r.line.InHand(i) == 0 && r.line.Queued(i) == 0 {
		r.all()
	}
}

// Fail has no stage begin anything any more, for a reason that Wait returns. All blocks come
// out, those that are worked on when that has ended.
func (r *Runner) Fail(err error) {
	r.mu.Lock()
	if r.err == nil {
		r.err = err
	}
	idle := r.line.Clear()
	r.all()
	r.mu.Unlock()
	for _, b := range idle {
		r.Out(b)
	}
}

// Wait returns when all blocks have passed, or when something has failed and all that was
// begun has ended. No block may be put any more.
func (r *Runner) Wait() error {
	r.mu.Lock()
	r.closed = true
	r.all()
	r.mu.Unlock()
	r.ended.Wait()
	close(r.stop)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.Stages {
		for r.Stages[i].Begin != nil && r.line.stages[i].hand > len(r.line.stages[i].held) {
			r.idle.Wait()
		}
	}
	for r.leaving > 0 {
		r.idle.Wait()
	}
	return r.err
}

// staff has as many goroutines as the stage has threads. The caller has the lock.
func (r *Runner) staff(i int) {
	want := r.line.Threads(i)
	if r.Stages[i].Begin != nil {
		want = 1
	}
	for ; r.workers[i] < want; r.workers[i]++ {
		r.ended.Add(1)
		go r.serve(i, r.workers[i])
	}
}

// serve is the nth goroutine of a stage.
func (r *Runner) serve(i, n int) {
	defer r.ended.Done()
	s := &r.Stages[i]
	if r.Nice && s.Work != nil {
		runtime.LockOSThread()                                       // for good: the thread ends with the goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice) // without, it is as others are
	}
	for {
		b := r.take(i, n)
		if b == nil {
			return
		}
		if s.Begin != nil {
			s.Begin(b, func(on bool, err error) { r.done(i, b, on, err) })
			continue
		}
		on, err := s.Work(b)
		r.done(i, b, on, err)
	}
}

// nice is the nice value of threads that yield.
const nice = 10

// take waits for a block for the nth goroutine of a stage; nil: it is to end.
func (r *Runner) take(i, n int) *Block {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		leaves := r.Stages[i].Begin == nil && n >= r.line.Threads(i)
		if r.err != nil || leaves || r.closed && r.nothingBefore(i) {
			r.workers[i]--
			r.ready[i].Signal() // that this one has got may be for another
			return nil
		}
		if b := r.line.Take(i, r.Now()); b != nil {
			r.moved(i)
			return b
		}
		r.ready[i].Wait()
	}
}

// nothingBefore reports whether no block can come to a stage any more.
func (r *Runner) nothingBefore(i int) bool {
	for k := range i {
		if r.line.stages[k].hand > 0 || len(r.line.stages[k].queue) > 0 {
			return false
		}
	}
	return len(r.line.stages[i].queue) == 0
}

func (r *Runner) done(i int, b *Block, on bool, err error) {
	if err != nil {
		r.Fail(err)
	}
	r.mu.Lock()
	out := !on || r.err != nil // after a failure no block goes on
	if out {
		r.line.Drop(i, b, r.Now())
	} else {
		out = r.line.Done(i, b, r.Now())
	}
	if out {
		r.leaving++
	}
	r.moved(i)
	r.mu.Unlock()
	if out {
		r.Out(b)
		r.left()
	}
}

// left says that Out has ended.
func (r *Runner) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaving--
	r.idle.Broadcast()
}

// monitor adapts threads.
func (r *Runner) monitor() {
	tick := r.Tick
	if tick == nil {
		ticker := time.NewTicker(MonitorInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-r.stop:
			return
		case <-tick:
			r.adapt()
		}
	}
}

func (r *Runner) adapt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	for i, threads := range Adapt(r.line.Samples(r.Now()), max(r.Cores, 1)) {
		r.line.SetThreads(i, threads)
		r.staff(i)
	}
	r.all()
}
