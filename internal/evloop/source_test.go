package evloop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// well is a source with an eventfd that tells of water only after Sleep.
type well struct {
	fd             int
	hidden, looked int // what Look finds, and how often it has looked
	found          chan int
	told           chan struct{} // holds one once the loop has told that it sleeps
}

func (w *well) Look() int {
	n := w.hidden
	w.hidden, w.looked = 0, w.looked+1
	if n > 0 {
		w.found <- n
	}
	return n
}

func (w *well) Sleep() bool {
	select {
	case w.told <- struct{}{}:
	default:
	}
	return w.hidden > 0
}

func (w *well) Ready(uint32) {
	var b [8]byte
	Read(w.fd, b[:])
	w.hidden++
}

// A source is asked before each sleep; what came by then keeps the loop awake, and
// its descriptor ends the sleep.
func TestSource(t *testing.T) {
	l, err := New(Config{Name: "source", CPU: -1, Node: -1})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	w := &well{fd: fd, found: make(chan int, 8), told: make(chan struct{}, 1)}
	l.AddSource(w)
	if err := l.Register(fd, unix.EPOLLIN, w); err != nil {
		t.Fatal(err)
	}
	go l.Run()
	defer l.Stop()
	l.Post(Func(func() { w.hidden = 3 })) // after the pass's look: Sleep has to see it
	expectWater(t, w, 3)
	select {
	case <-w.told:
	case <-time.After(30 * time.Second):
		t.Fatal("the loop slept without telling the source")
	}
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	expectWater(t, w, 1)
	removed := make(chan int)
	l.Post(Func(func() { l.RemoveSource(w); removed <- w.looked }))
	before := <-removed
	l.Post(Func(func() { removed <- w.looked }))
	if after := <-removed; after != before {
		t.Errorf("a removed source was looked into %d times", after-before)
	}
}

func expectWater(t *testing.T, w *well, want int) {
	t.Helper()
	select {
	case n := <-w.found:
		if n != want {
			t.Errorf("found %d, expected %d", n, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was found")
	}
}
