package evloop

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker ends the loop's sleep through an eventfd. The loop announces its sleep
// and then looks at the inbox; a producer fills the inbox and then looks for the
// announcement; so one of the two sees the other.
type waker struct {
	fd     int
	asleep atomic.Bool
	// users counts the goroutines between announcing themselves and having written
	// fd, so that close does not let a write reach whoever gets the number next.
	users  atomic.Int32
	closed atomic.Bool
	_      [cacheLine]byte
}

func (w *waker) open() (err error) {
	if w.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		w.fd = -1
		return fmt.Errorf("eventfd: %w", err)
	}
	return nil
}

// mayWake reports whether the loop announced that it may sleep.
func (w *waker) mayWake() bool { return w.asleep.Load() }

// signal wakes the loop if it still sleeps. One caller of many writes.
func (w *waker) signal(s *counters) {
	w.users.Add(1)
	defer w.users.Add(-1)
	if w.closed.Load() || !w.asleep.CompareAndSwap(true, false) {
		return
	}
	s.wakeups.Add(1)
	one := uint64(1)
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&one)), 8)
}

// Ready needs nothing: the eventfd is edge-triggered, so it is never read, and a
// counter that grows by one per sleep does not overflow.
func (w *waker) Ready(uint32) {}

// close waits for signals under way.
func (w *waker) close() {
	if w.fd < 0 || w.closed.Swap(true) {
		return
	}
	for w.users.Load() > 0 {
		runtime.Gosched()
	}
	_ = unix.Close(w.fd) // nothing is lost with an eventfd
}
