package evloop

import "lunar/internal/uring"

// ringPoller is registered for the ring's eventfd, so that completions end the
// loop's sleep. It does nothing itself: every pass reaps.
type ringPoller struct{}

func (ringPoller) Ready(uint32) {}

func (l *Loop) reap() int {
	if l.ring == nil {
		return 0
	}
	n, err := l.ring.Reap()
	if err != nil && !uring.Transient(err) {
		panic("evloop: " + err.Error())
	}
	return n
}

// submit hands the pass's requests to the kernel. What it is too short of memory
// to take stays queued; wait then keeps the loop from sleeping long.
func (l *Loop) submit() {
	if l.ring == nil || !l.ring.Unsubmitted() {
		return
	}
	if err := l.ring.Submit(); err != nil && !uring.Transient(err) {
		panic("evloop: " + err.Error())
	}
}
