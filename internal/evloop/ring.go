package evloop

import "lunar/internal/uring"

// ringPoller hears that the ring's descriptor is readable.
type ringPoller Loop

// Ready lets the kernel post deferred completions; the pass reaps them next.
func (p *ringPoller) Ready(uint32) {
	if err := p.ring.Poll(); err != nil && !uring.Transient(err) {
		panic("evloop: " + err.Error())
	}
}

func (l *Loop) reap() int {
	if l.ring == nil {
		return 0
	}
	return l.ring.Reap()
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
