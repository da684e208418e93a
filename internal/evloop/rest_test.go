package evloop

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/eventually"
)

// readiness tells when its descriptor was served.
type readiness struct{ seen chan int64 }

func (r *readiness) Ready(uint32) { r.seen <- Monotonic() }

// During a rest descriptors wait, and what is posted does not.
func TestRest(t *testing.T) {
	const long = time.Hour
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	l := start(t, Config{Name: "rest"})
	r := &readiness{make(chan int64, 8)}
	on(l, func() {
		if err := l.Register(fds[0], unix.EPOLLIN|unix.EPOLLET, r); err != nil {
			t.Error(err)
		}
	})
	before := l.Stats().Rests
	on(l, func() { l.Rest(long) })
	eventually.Holds(t, "the loop rests", func() bool { return l.Stats().Rests > before })
	if _, err := unix.Write(fds[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-r.seen:
		t.Error("a descriptor was served during the rest")
	case <-time.After(20 * time.Millisecond):
	}
	on(l, func() {}) // ends the rest
	<-r.seen
	on(l, func() { l.Unregister(fds[0]) })
}

// A timer that is due ends a rest, and the shorter of two rests holds.
func TestRestEnds(t *testing.T) {
	l := start(t, Config{Name: "rest"})
	fired := make(chan struct{})
	timer := &Timer{Fire: func() { close(fired) }}
	on(l, func() {
		l.Arm(timer, 5*time.Millisecond)
		l.Rest(time.Hour)
	})
	<-fired
	before := l.Stats()
	on(l, func() {
		l.Rest(time.Hour)
		l.Rest(time.Millisecond)
		l.Rest(time.Hour)
	})
	eventually.Holds(t, "the loop sleeps again after a rest", func() bool {
		now := l.Stats()
		return now.Rests > before.Rests && now.Sleeps > before.Sleeps
	})
}

// Stop does not wait for a rest.
func TestStopEndsRest(t *testing.T) {
	l := newLoop(t, Config{Name: "rest"})
	go l.Run()
	on(l, func() { l.Rest(time.Hour) })
	l.Stop()
}
