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
