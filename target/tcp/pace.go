package tcp

// pace is how fast an event thread's sends are, which differs tenfold: with the memory
// that is copied, that which the kernel has for it, and what is done at once on behalf of
// a receiver on this machine.
type pace struct {
	perByte float64 // nanoseconds, nearer to the slow ones of late than to their average; 0: none yet
}

// longest is what one send counts as at most, in nanoseconds: it was interrupted.
const longest = 1_000_000

// took learns from a send.
func (p *pace) took(bytes int, ns int64) {
	now := float64(min(ns, longest)) / float64(bytes)
	if p.perByte == 0 {
		p.perByte = now
	}
	if now > p.perByte {
		p.perByte += (now - p.perByte) / 2
	} else {
		p.perByte += (now - p.perByte) / 16
	}
}

// part is how many bytes leave in one send.
func (p *pace) part() int {
	if p.perByte*passSent <= passTime {
		return passSent
	}
	return max(leastPart, int(passTime/p.perByte))
}
