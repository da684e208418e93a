package evloop

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rest asks the loop to let descriptors wait for up to d before it looks at them
// again, so that more of them, or more of each, are served in one pass. Posts,
// timers and finished ring requests end the rest. It holds for the next look only;
// a shorter d replaces a longer one. It belongs to the loop's thread.
func (l *Loop) Rest(d time.Duration) {
	l.assertThread("Rest")
	if l.rest == 0 || int64(d) < l.rest {
		l.rest = int64(d)
	}
}

// timerSlack is how late, in nanoseconds, the kernel may end the sleep of an event
// thread. Its default would be longer than a rest.
const timerSlack = 1000

func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) }

// openQuiet makes the epoll of what ends a rest.
func (l *Loop) openQuiet() error {
	err := l.quiet.open()
	if err == nil {
		err = l.quiet.add(l.wake.fd, unix.EPOLLIN|unix.EPOLLET, &l.wake)
	}
	if err == nil && l.ring != nil {
		err = l.quiet.add(l.ring.WakeFD(), unix.EPOLLIN|unix.EPOLLET, ringPoller{})
	}
	return err
}

// takeRest sleeps if a rest was asked for and nothing else is to be done.
func (l *Loop) takeRest() {
	d := l.rest
	l.rest = 0
	if d <= 0 || l.busy() || l.ring != nil && l.ring.Unsubmitted() {
		return
	}
	now := Monotonic()
	if at, ok := l.timers.next(); ok {
		d = min(d, at-now)
	}
	if d <= 0 {
		return
	}
	if l.idle == 0 {
		l.idles(now)
	}
	l.stats.rests.Add(1)
	for end := now + d; d > 0; d = end - Monotonic() {
		l.wake.asleep.Store(true)
		over := !l.inbox.empty() || l.stopping.Load() || l.quiet.doze(d)
		l.wake.asleep.Store(false)
		if over || l.busy() {
			return
		}
	}
}

// doze waits for n nanoseconds at most. False: it was woken by something, possibly
// long ago. The Go scheduler is not told: it would cost more than so short a sleep
// is worth. Where the kernel has only milliseconds, there is no rest.
func (e *epoll) doze(n int64) (over bool) {
	if e.coarse {
		return true
	}
	limit := unix.NsecToTimespec(n)
	events, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(e.fd), uintptr(unsafe.Pointer(&e.events)), maxEvents,
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	e.coarse = errno == unix.ENOSYS || errno == unix.EPERM
	return errno != 0 && errno != unix.EINTR || events == 0
}
