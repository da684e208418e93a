package evloop

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameThread shows name in ps and top. The kernel keeps 15 bytes of it.
func nameThread(name string) {
	var text [16]byte
	copy(text[:15], name)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0) // cosmetic
}

// timerSlack is how late, in nanoseconds, the kernel may end the sleep of an event
// thread.
const timerSlack = 1000

func setTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) }

// goFirst puts the calling thread into the lowest real-time priority. Threads that it
// starts are ordinary ones.
func goFirst() error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
}

// An event thread that goes before others takes a CPU at once from a thread that does
// not, and gives it back after a slice.
const (
	beforeNice  = -10
	beforeSlice = 100_000 // ns, the least that the kernel knows
)

// goBefore lets the calling thread go before ordinary ones of its CPU when it wakes up, by
// its weight, if it may, and by a short slice (from Linux 6.12 on), which needs no right.
// Threads that it starts are ordinary ones. What somebody has given the process is more, if
// it is another class or a lower nice value, and stays.
func goBefore() error {
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil || now.Policy != unix.SCHED_NORMAL || now.Nice < beforeNice {
		return err
	}
	a := unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: beforeNice, Runtime: beforeSlice, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	if err := unix.SchedSetAttr(0, &a, 0); err == nil || !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return err
	}
	a.Nice = now.Nice
	return unix.SchedSetAttr(0, &a, 0)
}

// prefer puts the thread before others of its CPU, as far as the process may. One that
// never sleeps would leave them little.
func (l *Loop) prefer() {
	if l.config.RealTime {
		err := goFirst()
		if err == nil {
			return
		}
		l.log.Warn("event thread is in no real-time class", "reason", err)
	}
	if l.spin.always {
		return
	}
	if err := goBefore(); err != nil {
		l.log.Debug("event thread is an ordinary one", "reason", err)
	}
}
