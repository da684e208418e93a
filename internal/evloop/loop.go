// Package evloop is the event thread: one goroutine on a pinned OS thread of its own
// that runs everything that arrives on its connections to completion.
//
// A pass of the loop is, in this order:
//
//	epoll    non-blocking first; it blocks only when there is nothing to do
//	events   Poller.Ready of every ready descriptor
//	sources  Source.Look for work that has no descriptor
//	ring     Complete of every finished io_uring request
//	inbox    tasks that Post brought from other goroutines
//	timers   Timer.Fire of those that are due
//	again    tasks that asked in the previous pass for another turn
//	pass end tasks such as one writev per connection
//	submit   one io_uring_enter for all requests of the pass
//
// With an Order the loop looks for descriptors within a pass as well, where work yields,
// and serves those that go before others at once.
//
// Post, Stop, OnThread, Stats and Workers.Submit may be called by any goroutine.
// All else belongs to the loop's thread; before Run it belongs to the goroutine
// that called New.
//
// The files depend on each other in a circle, and stay so: each holds one part of the
// pass and the methods of Loop that feed it, on state that all parts share to decide
// whether the thread may sleep.
package evloop

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/buf"
	"lunar/internal/invariants"
	"lunar/internal/numa"
	"lunar/internal/uring"
)

// Config says what a Loop is made of.
type Config struct {
	Name        string        // of the thread and in log lines
	CPU         int           // to pin the thread to; -1 leaves it to the kernel
	Node        int           // NUMA node of the loop, as Topology numbers it; -1: none
	Topology    numa.Topology // says where the memory of Node is; zero: Node is the kernel's number
	Buffers     int           // bytes of Pool; 0 means no Pool
	Huge        arena.Huge    // pages of Pool
	RingEntries uint32        // submissions of Ring; 0 means no Ring
	Workers     *Workers      // for calls that block; shared by loops, may be nil
	RealTime    bool          // the thread goes before others of its CPU (SCHED_RR), where the process may
	InboxSize   int           // tasks in the lock-free inbox, rounded up to a power of two; 0 is 1024
	Logger      *slog.Logger  // nil is slog.Default
}

// Task is work for the loop's thread. On the data path it is a preallocated
// object, never a closure.
type Task interface{ Run() }

// Func makes a function a Task, for control work.
type Func func()

// Run calls f.
func (f Func) Run() { f() }

// Poller hears of a registered descriptor's readiness.
type Poller interface {
	// Ready is called at most once per pass with the EPOLL* events that are set.
	Ready(events uint32)
}

// Stopwatch times what passes do.
type Stopwatch interface {
	// Lap is called after each pass, and after Settle, with the time on the clock of
	// Monotonic: one look at it is the end of a pass and the begin of the next or of idleness.
	Lap(now int64)
}

// Loop is one event thread.
type Loop struct {
	config  Config
	log     *slog.Logger
	pool    *buf.Pool
	memory  int // bytes of pool
	ring    *uring.Ring
	workers *Workers

	poll    epoll
	sources []Source
	inbox   inbox
	wake    waker
	timers  timerHeap
	again   turns
	order   order
	end     []Task // of this pass
	now     int64
	watch   Stopwatch // nil: nobody times passes
	spin    spinner
	idle    int64 // since when there has been nothing to do, 0: there is something

	thread   atomic.Int64 // OS thread id while running
	stopping atomic.Bool
	life     struct {
		sync.Mutex
		phase phase
	}
	ended chan struct{}
	stats counters
}

type phase int

const (
	created phase = iota
	running
	over
)

// New makes a loop with its pool and ring, ready for Register and Post; Run
// starts it. When the kernel refuses io_uring, the reason is logged and Ring
// returns nil; that is not an error. Stop frees a loop that was never run.
func New(config Config) (*Loop, error) {
	l := &Loop{config: config, log: config.Logger, workers: config.Workers, ended: make(chan struct{}), now: Monotonic()}
	if l.log == nil {
		l.log = slog.Default()
	}
	l.log = l.log.With("loop", config.Name)
	l.inbox.init(config.InboxSize)
	err := errors.Join(l.poll.open(), l.wake.open(), l.openPool())
	if err == nil {
		l.openRing()
		if l.pool != nil {
			l.memory = l.pool.Size()
		}
		err = l.poll.add(l.wake.fd, unix.EPOLLIN|unix.EPOLLET, &l.wake)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("event loop %q: %w", config.Name, err), l.close())
	}
	return l, nil
}

// openPool proves that the CPU can be pinned to, and allocates the pool from a
// thread there, so that first touch places the pages right even where mbind is
// forbidden.
func (l *Loop) openPool() (err error) {
	numa.OwnThread(func() {
		if err = l.pin(); err == nil && l.config.Buffers > 0 {
			l.pool, err = buf.NewHugePool(l.config.Buffers, l.config.Topology.MemoryNode(l.config.Node), l.config.Huge)
		}
	})
	return err
}

func (l *Loop) pin() error {
	if l.config.CPU < 0 {
		return nil
	}
	return numa.Pin(l.config.CPU)
}

// openRing leaves Ring nil when the kernel refuses.
func (l *Loop) openRing() {
	if l.config.RingEntries == 0 {
		return
	}
	ring, err := uring.Setup(l.config.RingEntries)
	if err == nil {
		err = l.poll.add(ring.WakeFD(), unix.EPOLLIN|unix.EPOLLET, ringPoller{})
		if err != nil {
			err = errors.Join(err, ring.Close())
		}
	}
	if err != nil {
		l.log.Warn("no io_uring, blocking file calls go to worker goroutines", "reason", err)
		return
	}
	l.ring = ring
}

// Run executes the loop on a thread of its own, which it pins, and returns after
// Stop. A panic in a Task or Poller is not recovered. Running twice panics; running
// after Stop returns at once.
func (l *Loop) Run() {
	if l.begin() {
		numa.OwnThread(l.run)
	}
}

func (l *Loop) run() {
	completed := false
	defer func() { l.finish(completed) }()
	l.enter()
	for !l.stopping.Load() {
		l.pass()
	}
	l.drain()
	completed = true
}

// begin moves to the running phase and reports whether there is something to run.
func (l *Loop) begin() bool {
	l.life.Lock()
	defer l.life.Unlock()
	if l.life.phase == running {
		panic("evloop: loop " + l.config.Name + " is already running")
	}
	if l.life.phase == over {
		return false
	}
	l.life.phase = running
	return true
}

// enter makes the current thread the loop's.
func (l *Loop) enter() {
	l.thread.Store(int64(unix.Gettid()))
	l.stats.began.Store(Monotonic())
	nameThread(l.config.Name)
	setTimerSlack()
	if err := l.pin(); err != nil {
		l.log.Warn("event thread runs unpinned", "reason", err)
	}
	l.prefer()
	if l.ring == nil {
		return
	}
	if err := l.ring.Enable(); err != nil {
		panic("evloop: " + err.Error()) // Setup succeeded, so this cannot be the environment
	}
}

// pass is one turn of the loop; the package comment lists its steps.
func (l *Loop) pass() {
	l.again.swap()
	n := l.wait()
	l.stats.passes.Add(1)
	if l.order.by != nil {
		l.order.by.Begin(l.now)
	}
	work := l.dispatch(n)
	work += l.look()
	work += l.reap()
	if handed := l.inbox.run(); handed > 0 {
		l.stats.handed.Add(uint64(handed))
		work += handed
	}
	work += l.timers.fire(l.now)
	work += l.runAgain()
	l.runPassEnd()
	l.submit()
	if l.order.by != nil {
		l.order.by.End(Monotonic())
	}
	l.countPool()
	if work > 0 && l.idle > 0 {
		l.works()
	}
}

// runAgain runs the tasks of Again.
func (l *Loop) runAgain() int {
	for i, t := range l.again.current {
		l.again.current[i] = nil
		t.Run()
		l.Yield()
	}
	return len(l.again.current)
}

// Settle runs the tasks of the pass's end now, because what the caller goes on with takes
// long. It is not to be called by one of them.
func (l *Loop) Settle() {
	l.runPassEnd()
	if l.watch != nil {
		l.watch.Lap(Monotonic())
	}
}

// runPassEnd also runs the tasks that pass-end tasks add.
func (l *Loop) runPassEnd() {
	for i := 0; i < len(l.end); i++ {
		t := l.end[i]
		l.end[i] = nil
		t.Run()
		l.Yield()
	}
	l.end = l.end[:0]
}

// Stop ends the loop after its current pass: posted tasks still run, requests in
// the ring complete, then its descriptors, ring and pool are freed; timers and
// Again tasks are not run any more. It returns when that is done, except on the
// loop's own thread. Stopping again only waits. A loop that Run has not begun is
// freed, and what was posted to it does not run.
func (l *Loop) Stop() {
	l.stopping.Store(true)
	if l.neverRun() {
		l.finish(true)
		return
	}
	if l.OnThread() {
		return
	}
	l.wake.signal(&l.stats)
	<-l.ended
}

// neverRun claims the end of a loop that Run never began.
func (l *Loop) neverRun() bool {
	l.life.Lock()
	defer l.life.Unlock()
	if l.life.phase != created {
		return false
	}
	l.life.phase = over
	return true
}

// drain finishes what was begun: posted tasks and requests in the ring.
func (l *Loop) drain() {
	for {
		n := l.inbox.run()
		l.runPassEnd()
		if l.ring != nil {
			n += l.ring.InFlight()
			if err := l.ring.Drain(); err != nil {
				panic("evloop: " + err.Error())
			}
		}
		if n == 0 && l.inbox.empty() {
			return
		}
	}
}

// finish frees the loop. After a panic nothing is freed, since the kernel may
// still use the memory.
func (l *Loop) finish(completed bool) {
	l.life.Lock()
	l.life.phase = over
	l.life.Unlock()
	l.thread.Store(0)
	if completed {
		if err := l.close(); err != nil {
			l.log.Error("event loop did not end cleanly", "error", err)
		}
	}
	close(l.ended)
}

func (l *Loop) close() error {
	l.wake.close()
	err := l.poll.close()
	if l.ring != nil {
		err = errors.Join(err, l.ring.Close())
	}
	if l.pool != nil {
		err = errors.Join(err, l.pool.Close())
	}
	return err
}

// Post hands t to the loop from any goroutine. It neither blocks nor loses: when
// the inbox is full, t goes to an unbounded list. Tasks of one goroutine run in
// the order of their Posts. A Post that races with the end of the loop, or comes
// after it, may never run.
func (l *Loop) Post(t Task) {
	l.inbox.post(t)
	if l.wake.mayWake() {
		l.wake.signal(&l.stats)
	}
}

// Again runs t in the next pass, before which the loop does not block: the way
// to bound the work that one connection does per pass.
func (l *Loop) Again(t Task) {
	l.assertThread("Again")
	l.again.add(t)
}

// AtPassEnd runs t once at the end of this pass, also when t is added by another
// pass-end task.
func (l *Loop) AtPassEnd(t Task) {
	l.assertThread("AtPassEnd")
	l.end = append(l.end, t)
}

// SetStopwatch has w hear when passes end.
func (l *Loop) SetStopwatch(w Stopwatch) {
	l.assertThread("SetStopwatch")
	l.watch = w
}

// Now returns the time of the current pass in nanoseconds, on the clock of Monotonic.
func (l *Loop) Now() int64 { return l.now }

// Pool returns the loop's buffers, nil when none were configured.
func (l *Loop) Pool() *buf.Pool { return l.pool }

// Ring returns the loop's io_uring, nil when none was configured or the kernel
// refuses it. Queued Ops are submitted at the end of the pass.
func (l *Loop) Ring() *uring.Ring { return l.ring }

// Workers returns the goroutines for calls that block, nil when none were
// configured.
func (l *Loop) Workers() *Workers { return l.workers }

// Name returns the configured name.
func (l *Loop) Name() string { return l.config.Name }

// Memory returns the kernel's number of the NUMA node that memory of the loop's
// thread is to lie on, -1 for any.
func (l *Loop) Memory() int {
	if l.config.Node < 0 {
		return -1
	}
	return l.config.Topology.MemoryNode(l.config.Node)
}

// Node returns the configured NUMA node, -1 when unspecified: a number of the
// topology, which may be an override and so not the kernel's.
func (l *Loop) Node() int { return l.config.Node }

// CPU returns the configured CPU, -1 when unpinned.
func (l *Loop) CPU() int { return l.config.CPU }

// OnThread reports whether the caller runs on the loop's thread.
func (l *Loop) OnThread() bool { return l.thread.Load() == int64(unix.Gettid()) }

// assertThread accepts any thread before Run, when the loop is the creator's.
func (l *Loop) assertThread(method string) {
	if invariants.Enabled && l.thread.Load() != 0 && !l.OnThread() {
		panic("evloop: " + method + " outside the thread of loop " + l.config.Name)
	}
}
