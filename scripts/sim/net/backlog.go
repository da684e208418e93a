package net

import "math/rand/v2"

// backlog is the messages of a flow of the discrete-time model: they arrive at random, and
// are sent one after the other.
type backlog struct {
	target float64 // us, what a message should take at most
	mean   float64 // packets
	gap    float64 // us between arrivals, mean
	r      *rand.Rand

	next    float64 // us: the next arrival
	waiting []waiting
	latency float64 // us, smoothed
	ended   int
	missed  int // of them, later than the target
}

// waiting is a message that has not been sent wholly.
type waiting struct{ came, left float64 }

// due lets messages arrive up to a time in us, and reports whether any are there.
func (b *backlog) due(now float64) bool {
	for b.next <= now {
		if b.next > 0 {
			b.waiting = append(b.waiting, waiting{b.next, b.r.ExpFloat64() * b.mean})
		}
		b.next += b.r.ExpFloat64() * b.gap
	}
	return len(b.waiting) > 0
}

// take sends up to so many packets, which have arrived at time end, and returns how many.
func (b *backlog) take(packets, end float64) (sent float64) {
	for sent < packets && len(b.waiting) > 0 {
		w := &b.waiting[0]
		part := min(packets-sent, w.left)
		sent += part
		if w.left -= part; w.left > 0 {
			break
		}
		b.end(end - w.came)
		b.waiting = b.waiting[1:]
	}
	return sent
}

func (b *backlog) end(latency float64) {
	b.latency = smoothed(b.latency, latency)
	b.ended++
	if latency > b.target {
		b.missed++
	}
}

// lateness is the latency of messages divided by its target.
func (b *backlog) lateness() float64 {
	if b == nil || b.latency == 0 {
		return 1
	}
	return b.latency / b.target
}

// misses is the share of messages that missed the target, in %.
func (b *backlog) misses() float64 { return 100 * float64(b.missed) / float64(max(1, b.ended)) }
