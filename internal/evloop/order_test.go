package evloop

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// always is an Order whose turns are over at once.
type always struct{ due, resumed int }

func (*always) Begin(int64)      {}
func (*always) End(int64)        {}
func (a *always) Due(int64) bool { a.due++; return true }
func (a *always) Resumed(int64)  { a.resumed++ }

// prior is a Poller that goes before others.
type prior struct {
	readyFunc
	prior bool
}

func (p *prior) Prior() bool { return p.prior }

// told registers a Poller on a pipe of its own and returns the end to write to. It reads
// what is there before it calls ready.
func told(t *testing.T, l *Loop, goesFirst bool, ready func()) (w int, p *prior) {
	r, w := pipe(t)
	p = &prior{prior: goesFirst}
	b := make([]byte, 16)
	p.readyFunc = func(uint32) {
		if _, err := unix.Read(r, b); err != nil {
			t.Errorf("told of a descriptor without data: %v", err)
		}
		ready()
	}
	mustRegister(t, l, r, unix.EPOLLIN|unix.EPOLLET, p)
	return w, p
}

// TestOrder: who goes first is served while others are, once they yield, and before them
// at the start of a pass; who does not waits for the next pass.
func TestOrder(t *testing.T) {
	l := driven(t, Config{})
	order := &always{}
	l.SetOrder(order)
	var story []string
	tell := func(what string) { story = append(story, what) }
	var first, second int
	busy, _ := told(t, l, false, func() {
		tell("busy begins")
		write(t, first, "x")
		write(t, second, "x")
		l.Yield()
		tell("busy ends")
	})
	first, _ = told(t, l, true, func() {
		if !l.Ahead() {
			t.Error("does not know that it is ahead")
		}
		l.Yield() // nobody interrupts it
		tell("first")
	})
	second, _ = told(t, l, false, func() { tell("second") })
	write(t, busy, "x")
	l.pass()
	expectStory(t, story, "busy begins", "first", "busy ends")
	if !l.busy() {
		t.Error("the loop would sleep although somebody waits")
	}
	write(t, first, "x")
	l.pass()
	expectStory(t, story[3:], "first", "second")
	if l.busy() || l.Ahead() || order.due == 0 || order.due != order.resumed {
		t.Errorf("busy %v, ahead %v, due %d times, resumed %d times", l.busy(), l.Ahead(), order.due, order.resumed)
	}
}

// TestOrderEnds: what waits when the order ends is served, and unregistered descriptors
// are not.
func TestOrderEnds(t *testing.T) {
	l := driven(t, Config{})
	l.SetOrder(&always{})
	var story []string
	var late [2]int
	var gone *prior
	busy, _ := told(t, l, false, func() {
		write(t, late[0], "x")
		write(t, late[1], "x")
		l.Yield()
		l.SetOrder(nil)
	})
	late[0], _ = told(t, l, false, func() { story = append(story, "late") })
	late[1], gone = told(t, l, false, func() { story = append(story, "gone") })
	write(t, busy, "x")
	l.pass()
	for fd, s := range l.poll.slots {
		if s.poller == Poller(gone) {
			if err := l.Unregister(fd); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.pass()
	expectStory(t, story, "late")
}

// TestOrderAllocatesNothing: passes with a busy descriptor, one that goes first and one
// that waits.
func TestOrderAllocatesNothing(t *testing.T) {
	l := driven(t, Config{})
	l.SetOrder(&always{})
	x, served := []byte("x"), 0
	var first, second int
	busy, _ := told(t, l, false, func() {
		_, _ = unix.Write(first, x)
		_, _ = unix.Write(second, x)
		l.Yield()
	})
	first, _ = told(t, l, true, func() { served++ })
	second, _ = told(t, l, false, func() {})
	n := testing.AllocsPerRun(100, func() {
		_, _ = unix.Write(busy, x)
		l.pass()
	})
	if n != 0 || served < 100 {
		t.Errorf("%v allocations per pass, %d served first; expected 0, and at least 100", n, served)
	}
}

func expectStory(t *testing.T, found []string, expected ...string) {
	t.Helper()
	if !slices.Equal(found, expected) {
		t.Fatalf("found %q, expected %q", found, expected)
	}
}
