package evloop

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
	"lunar/internal/invariants"
	"lunar/internal/numa"
)

func TestPassOrder(t *testing.T) {
	l := driven(t, Config{})
	var got []string
	note := func(name string) Func { return func() { got = append(got, name) } }
	r, w := pipe(t)
	if err := l.Register(r, unix.EPOLLIN|unix.EPOLLET, readyFunc(func(uint32) { note("event")() })); err != nil {
		t.Fatal(err)
	}
	timer := Timer{Fire: note("timer")}
	l.AtPassEnd(Func(func() { note("end")(); l.AtPassEnd(note("end of end")) }))
	l.Again(note("again"))
	l.Arm(&timer, 0)
	l.Post(note("inbox"))
	write(t, w, "x")
	l.pass()
	want := []string{"event", "inbox", "timer", "again", "end", "end of end"}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, expected %v", got, want)
	}
}

type readyFunc func(uint32)

func (f readyFunc) Ready(events uint32) { f(events) }

// A task that asks again gets one turn per pass, wherever it asks from.
func TestAgainRunsOncePerPass(t *testing.T) {
	l := driven(t, Config{})
	turns := 0
	var again Func
	again = func() {
		if turns++; turns < 3 {
			l.Again(again)
		}
	}
	l.Post(Func(func() { l.Again(again) }))
	for want := range 4 {
		l.pass()
		if turns != want {
			t.Fatalf("%d turns after pass %d, expected %d", turns, want+1, want)
		}
		l.Post(noop{}) // keeps the last pass from blocking
	}
}

// What the creator queues before Run needs no event to be run.
func TestTasksBeforeRun(t *testing.T) {
	for name, add := range map[string]func(*Loop, Task){
		"Again": (*Loop).Again, "AtPassEnd": (*Loop).AtPassEnd, "Post": (*Loop).Post,
		"Arm": func(l *Loop, task Task) { l.Arm(&Timer{Fire: task.Run}, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, Config{})
			ran := make(chan struct{})
			add(l, Func(func() { close(ran) }))
			go l.Run()
			<-ran
			l.Stop()
		})
	}
}

func TestUnregisterInPass(t *testing.T) {
	l := driven(t, Config{})
	var fds [2]int
	calls := 0
	for i := range fds {
		r, w := pipe(t)
		fds[i] = r
		write(t, w, "x")
		other := 1 - i
		mustRegister(t, l, r, unix.EPOLLIN, readyFunc(func(uint32) {
			calls++
			if err := l.Unregister(fds[other]); err != nil {
				t.Error(err)
			}
		}))
	}
	l.pass()
	if calls != 1 {
		t.Errorf("%d Pollers called, expected 1: it unregistered the other", calls)
	}
}

// A descriptor that is registered anew in the same pass must not get the event
// that was fetched for its former Poller.
func TestReregisterInPass(t *testing.T) {
	l := driven(t, Config{})
	var fds [2]int
	stale, moved := 0, -1
	for i := range fds {
		r, w := pipe(t)
		fds[i] = r
		write(t, w, "x")
		other := 1 - i
		mustRegister(t, l, r, unix.EPOLLIN|unix.EPOLLET, readyFunc(func(uint32) {
			moved = fds[other]
			if err := l.Unregister(moved); err != nil {
				t.Error(err)
			}
			mustRegister(t, l, moved, unix.EPOLLIN|unix.EPOLLET, readyFunc(func(uint32) { stale++ }))
		}))
	}
	l.pass()
	if stale != 0 {
		t.Errorf("the new Poller of descriptor %d got %d stale events", moved, stale)
	}
	l.pass()
	if stale != 1 {
		t.Errorf("the new Poller got %d events in the next pass, expected its own 1", stale)
	}
}

func mustRegister(t testing.TB, l *Loop, fd int, events uint32, p Poller) {
	t.Helper()
	if err := l.Register(fd, events, p); err != nil {
		t.Fatal(err)
	}
}

// Level-triggered repeats until it is read, edge-triggered does not.
func TestTriggering(t *testing.T) {
	for _, c := range []struct {
		name   string
		events uint32
		want   int
	}{{"level", unix.EPOLLIN, 3}, {"edge", unix.EPOLLIN | unix.EPOLLET, 1}} {
		t.Run(c.name, func(t *testing.T) {
			l := driven(t, Config{})
			r, w := pipe(t)
			calls := 0
			mustRegister(t, l, r, c.events, readyFunc(func(uint32) { calls++ }))
			write(t, w, "x")
			for range 3 {
				l.Post(noop{})
				l.pass()
			}
			if calls != c.want {
				t.Errorf("%d calls in 3 passes, expected %d", calls, c.want)
			}
		})
	}
}

func TestModify(t *testing.T) {
	l := driven(t, Config{})
	_, w := pipe(t)
	var got uint32
	mustRegister(t, l, w, 0, readyFunc(func(events uint32) { got |= events }))
	l.Post(noop{})
	l.pass()
	if got != 0 {
		t.Errorf("events %#x without asking for any", got)
	}
	if err := l.Modify(w, unix.EPOLLOUT); err != nil {
		t.Fatal(err)
	}
	l.pass()
	if got != unix.EPOLLOUT {
		t.Errorf("events %#x, expected EPOLLOUT", got)
	}
}

func TestRegisterErrors(t *testing.T) {
	l := driven(t, Config{})
	r, _ := pipe(t)
	mustRegister(t, l, r, unix.EPOLLIN, readyFunc(func(uint32) {}))
	for name, err := range map[string]error{
		"register twice":    l.Register(r, unix.EPOLLIN, readyFunc(func(uint32) {})),
		"register -1":       l.Register(-1, unix.EPOLLIN, readyFunc(func(uint32) {})),
		"register closed":   l.Register(100000, unix.EPOLLIN, readyFunc(func(uint32) {})),
		"modify unknown":    l.Modify(r+1000, unix.EPOLLIN),
		"modify -1":         l.Modify(-1, unix.EPOLLIN),
		"unregister closed": l.Unregister(100000),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A loop with nothing to do sleeps; it does not turn.
func TestIdleLoopSleeps(t *testing.T) {
	l := start(t, Config{})
	on(l, func() {})
	eventually.Holds(t, "the loop sleeps", func() bool { return l.Stats().Sleeps > 0 })
	before := l.Stats()
	time.Sleep(50 * time.Millisecond) // in which a loop that turns makes thousands of passes
	if after := l.Stats(); after.Passes > before.Passes+2 {
		t.Errorf("an idle loop made %d passes", after.Passes-before.Passes)
	}
	eventually.Holds(t, "a task wakes the sleeping loop", func() bool {
		on(l, func() {})
		return l.Stats().Wakeups > 0
	})
}

func TestBusyPollDoesNotSleep(t *testing.T) {
	l := start(t, Config{})
	var before Stats
	on(l, func() { l.SetBusyPoll(time.Hour) })
	for range 2 * spinFrom { // idle times that end within the hour
		time.Sleep(time.Millisecond)
		on(l, func() { before = l.Stats() })
	}
	eventually.Holds(t, "the loop turns", func() bool { return l.Stats().Passes >= before.Passes+1000 })
	if after := l.Stats(); after.Sleeps != before.Sleeps {
		t.Errorf("%d sleeps while polling, expected none", after.Sleeps-before.Sleeps)
	}
	on(l, func() { l.SetBusyPoll(0) })
}

// Tasks of one producer keep their order and none is lost, also through the
// overflow list of a tiny inbox.
func TestManyProducers(t *testing.T) {
	for _, size := range []int{1, 4, 1024} {
		l := start(t, Config{InboxSize: size})
		const producers, posts = 8, 2000
		var next [producers]int
		var ran sync.WaitGroup
		ran.Add(producers * posts)
		var posting sync.WaitGroup
		for p := range producers {
			posting.Go(func() {
				for i := range posts {
					l.Post(Func(func() {
						if next[p] != i {
							t.Errorf("inbox of %d, producer %d: task %d ran when %d was due", size, p, i, next[p])
						}
						next[p]++
						ran.Done()
					}))
				}
			})
		}
		posting.Wait()
		ran.Wait()
	}
}

func TestPostFromTheLoop(t *testing.T) {
	l := start(t, Config{InboxSize: 2})
	var ran sync.WaitGroup
	ran.Add(100)
	on(l, func() {
		for range 100 {
			l.Post(Func(ran.Done))
		}
	})
	ran.Wait()
}

func TestOnThread(t *testing.T) {
	l := start(t, Config{})
	if l.OnThread() {
		t.Error("the test's goroutine is on the loop's thread")
	}
	on(l, func() {
		if !l.OnThread() {
			t.Error("a task is not on the loop's thread")
		}
	})
}

func TestThreadAssertions(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs -tags invariants")
	}
	l := start(t, Config{})
	on(l, func() {})
	for _, f := range []func(){
		func() { l.Again(noop{}) },
		func() { l.AtPassEnd(noop{}) },
		func() { l.Arm(&Timer{}, 0) },
		func() { l.Disarm(&Timer{}) },
		func() { _ = l.Register(0, 0, nil) },
	} {
		expectPanic(t, f)
	}
}

func TestPinnedAndNamed(t *testing.T) {
	cpus := numa.Allowed()
	cpu := cpus[len(cpus)-1]
	l, err := New(Config{Name: "a name of more than 15 bytes", CPU: cpu, Buffers: 1 << 20, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	go l.Run()
	defer l.Stop()
	on(l, func() {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() != 1 || !set.IsSet(cpu) {
			t.Errorf("%d CPUs (%v), expected only %d", set.Count(), err, cpu)
		}
	})
	if l.Pool().Size() != 1<<20 || l.Name() == "" || l.CPU() != cpu || l.Node() != 0 {
		t.Errorf("pool of %d bytes, name %q, CPU %d, node %d", l.Pool().Size(), l.Name(), l.CPU(), l.Node())
	}
}

func TestNewReportsWhatFailed(t *testing.T) {
	_, err := New(Config{Name: "nowhere", CPU: 1023, Logger: quiet()})
	if err == nil || !strings.Contains(err.Error(), "nowhere") || !strings.Contains(err.Error(), "CPU 1023") {
		t.Errorf("error %v, expected one that names the loop and the CPU", err)
	}
}

func TestStop(t *testing.T) {
	t.Run("never run", func(t *testing.T) {
		l := newLoop(t, Config{Buffers: 1 << 20, RingEntries: 4})
		l.Stop()
		l.Stop()
		l.Run()
		l.Post(noop{})
	})
	t.Run("by several at once", func(t *testing.T) {
		l := start(t, Config{})
		var group sync.WaitGroup
		for range 8 {
			group.Go(l.Stop)
		}
		group.Wait()
	})
	t.Run("from its own thread", func(t *testing.T) {
		l := start(t, Config{})
		on(l, l.Stop)
		<-l.ended
	})
	t.Run("while it starts", func(t *testing.T) {
		for range 50 {
			l := newLoop(t, Config{})
			var group sync.WaitGroup
			group.Go(l.Run)
			l.Stop()
			group.Wait()
		}
	})
}

// What was posted before Stop runs, and posts that race with it hurt nobody.
func TestStopRunsWhatWasPosted(t *testing.T) {
	l := start(t, Config{InboxSize: 8})
	on(l, func() {}) // Stop before Run has begun frees the loop and runs nothing
	var before, group sync.WaitGroup
	var ran atomic.Int64
	for range 4 {
		before.Add(1)
		group.Go(func() {
			for range 500 {
				l.Post(Func(func() { ran.Add(1) }))
			}
			before.Done()
			for range 500 {
				l.Post(noop{})
			}
		})
	}
	before.Wait()
	l.Stop()
	group.Wait()
	if ran.Load() != 2000 {
		t.Errorf("%d tasks ran, expected the 2000 posted before Stop", ran.Load())
	}
}

func TestRunTwicePanics(t *testing.T) {
	l := start(t, Config{})
	on(l, func() { expectPanic(t, l.Run) })
}

// The loop does not hide a panic, and Stop does not wait for ever after it.
func TestPanicLeavesRun(t *testing.T) {
	l := newLoop(t, Config{})
	l.Post(Func(func() { panic("from a task") }))
	got := make(chan any)
	go numa.OwnThread(func() { // as Run does, whose panic would end the process
		defer func() { got <- recover() }()
		l.begin()
		l.run()
	})
	if p := <-got; p != "from a task" {
		t.Errorf("panic %v, expected the task's", p)
	}
	l.Stop()
	if err := l.close(); err != nil {
		t.Error(err)
	}
}
