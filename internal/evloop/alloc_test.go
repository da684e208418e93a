package evloop

import (
	"testing"
	"time"
)

// task is a preallocated Task of the data path.
type task struct{ ran int }

func (t *task) Run() { t.ran++ }

// One pass with each kind of work allocates nothing.
func TestPassAllocatesNothing(t *testing.T) {
	l := driven(t, Config{RingEntries: 8, Buffers: 1 << 20})
	work, timer := &task{}, &Timer{}
	timer.Fire = work.Run
	for name, add := range map[string]func(){
		"Post":      func() { l.Post(work) },
		"Again":     func() { l.Again(work) },
		"AtPassEnd": func() { l.AtPassEnd(work); l.Post(work) },
		"Arm":       func() { l.Arm(timer, time.Hour); l.Arm(timer, 0) },
	} {
		before := work.ran
		n := testing.AllocsPerRun(200, func() { add(); l.pass() })
		if n != 0 || work.ran < before+200 {
			t.Errorf("%s: %v allocations and %d runs, expected 0 and at least 200", name, n, work.ran-before)
		}
	}
}

func TestSpilledPostAllocatesNothing(t *testing.T) {
	l := driven(t, Config{InboxSize: 1})
	work := &task{}
	n := testing.AllocsPerRun(200, func() {
		for range 10 {
			l.Post(work)
		}
		l.pass()
	})
	if n != 0 || work.ran < 2000 {
		t.Errorf("%v allocations and %d runs, expected 0 and at least 2000", n, work.ran)
	}
}

func TestRingRoundTripAllocatesNothing(t *testing.T) {
	l := driven(t, Config{RingEntries: 8, Buffers: 1 << 20})
	needRing(t, l)
	f, _ := pages(t, 1)
	fd, done := int(f.Fd()), false
	r := &request{}
	r.then = func() { done = true }
	n := testing.AllocsPerRun(100, func() {
		b := l.Pool().Get(4096)
		r.Read(fd, b.Bytes(), 0)
		l.Ring().Queue(&r.Op, r)
		l.Again(noop{}) // the pass that submits must not sleep
		for done = false; !done; {
			l.pass()
		}
		b.Release()
	})
	if n != 0 || r.res != 4096 {
		t.Errorf("%v allocations and result %d, expected 0 and 4096", n, r.res)
	}
}

func BenchmarkPostRun(b *testing.B) {
	l := driven(b, Config{})
	work := &task{}
	for b.Loop() {
		l.Post(work)
		l.inbox.run()
	}
}

func BenchmarkPass(b *testing.B) {
	l := driven(b, Config{})
	work := &task{}
	for b.Loop() {
		l.Post(work)
		l.pass()
	}
}

// laps notes when passes end.
type laps struct {
	n    int
	last int64
}

func (w *laps) Lap(now int64) { w.n, w.last = w.n+1, now }

// TestStopwatch: what a pass does ends before the time that its lap is told, which is when
// the next one begins. A pass that settles in its midst has two laps.
func TestStopwatch(t *testing.T) {
	l := driven(t, Config{})
	w := &laps{}
	l.SetStopwatch(w)
	var ended int64
	note := Func(func() { ended = Monotonic() })
	l.Again(Func(func() { l.AtPassEnd(note) }))
	l.pass()
	l.Again(noop{})
	l.pass()
	if w.n != 2 || w.last < ended || w.last != l.Now() {
		t.Errorf("found %d laps, the last at %d, expected 2, after %d and at %d", w.n, w.last, ended, l.Now())
	}
	l.Again(Func(func() {
		l.AtPassEnd(note)
		l.Settle()
		if w.n != 4 || w.last < ended {
			t.Errorf("found %d laps, the last at %d, expected 4, after %d", w.n, w.last, ended)
		}
	}))
	l.pass()
}
