package evloop

import (
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

// beforeSlice is for how long, in nanoseconds, an event thread keeps a CPU that others wait
// for: the least that the kernel knows.
const beforeSlice = 100_000

// goBefore lets the calling thread go before ordinary ones of its CPU when it wakes up, for
// who asks for a short slice has an early deadline (from Linux 6.12 on). It needs no right.
// Threads that it starts have the usual slice. A nice value below that of others is left
// out: -10 takes a fifth to a quarter of the rate of 4 KiB commands at depth 32
// (docs/security.md). Another class or nice value that somebody has given the
// process stays.
func goBefore() error {
	now, err := unix.SchedGetAttr(0, 0)
	if err != nil || now.Policy != unix.SCHED_NORMAL {
		return err
	}
	return unix.SchedSetAttr(0, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Nice: now.Nice, Runtime: beforeSlice, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
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
