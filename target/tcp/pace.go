package tcp

// pace is how fast an event thread's sends are, which differs tenfold: with the memory
// that is copied, that which the kernel has for it, and what is done at once on behalf of
// a receiver on this machine.
type pace struct {
	perByte float64 // nanoseconds, the average of late; 0: none yet
}

// longest is what one send counts as at most, in nanoseconds: it was interrupted.
const longest = 1_000_000

// took learns from a send.
func (p *pace) took(bytes int, ns int64) {
	now := float64(min(ns, longest)) / float64(bytes)
	if p.perByte == 0 {
		p.perByte = now
	}
	p.perByte += (now - p.perByte) / 8
}

// part is how many bytes leave in one send: half of what a pass may send.
func (p *pace) part() int {
	if p.perByte*passSent <= passTime {
		return passSent / 2
	}
	return max(timedFrom, int(passTime/p.perByte)/2)
}
