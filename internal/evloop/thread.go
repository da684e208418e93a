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
