package net

import "lunar/scripts/sim/kernel"

// Units of the clock of simulations with a network. It counts ps, because a packet of 128
// bytes takes 10.24 ns at 100 Gb/s.
const (
	Nanosecond  = int64(1000)
	Microsecond = 1000 * Nanosecond
	Millisecond = 1000 * Microsecond
	Second      = 1000 * Millisecond
)

// What a hop takes behind the sending of a packet.
const (
	Propagation = 500 * Nanosecond
	Switching   = 300 * Nanosecond // to the queue of a switch's egress
)

// PerByte is how long a byte takes on a link of so many Gb/s, in ps.
func PerByte(gigabits float64) int64 { return int64(8000 / gigabits) }

// Link is the egress queue of a port with the wire behind it: in order of arrival, urgent
// packets first, none interrupted.
type Link struct {
	Mark    int  // K: from so many packets of MTU on, some that come are marked; 0 marks none
	Step    bool // all that come then are marked
	Room    int  // Bmax: packets that the queue holds; 0 is without bound
	Reserve int  // of Room, for urgent packets alone

	Sent    int64 // bytes on the wire
	Dropped int64 // packets
	Longest int   // packets that were queued at once

	kernel  *kernel.Kernel
	perByte int64   // ps
	delay   int64   // ps
	owed    float64 // marks
	waiting int     // bytes
	first   fifo    // urgent
	normal  fifo
	current *Packet // on the wire; nil if idle
}

// NewLink returns a link whose bytes take perByte ps, and whose packets are at the next
// hop a delay in ps after their end has left.
func NewLink(k *kernel.Kernel, perByte, delay int64) *Link {
	return &Link{kernel: k, perByte: perByte, delay: delay}
}

// queued is how many packets the port has, the one that is being sent included.
func (l *Link) queued() int {
	n := l.first.len() + l.normal.len()
	if l.current != nil {
		n++
	}
	return n
}

// send takes a packet, or drops it if the queue is full.
func (l *Link) send(p *Packet) {
	n := l.queued()
	room := l.Room
	if !p.Urgent {
		room -= l.Reserve
	}
	if l.Room > 0 && n >= room {
		l.Dropped++
		p.drop()
		return
	}
	p.Marked = l.marks(p, l.waiting/MTU) || p.Marked
	l.waiting += p.Bytes
	l.Longest = max(l.Longest, n+1)
	if p.Urgent {
		l.first.push(p)
	} else {
		l.normal.push(p)
	}
	if l.current == nil {
		l.next(l.kernel.Now())
	}
}

// marks reports whether a packet that finds n others is to be marked: the share of the
// queue that is beyond K is, which is the p of the discrete-time model.
func (l *Link) marks(p *Packet, n int) bool {
	if l.Mark == 0 || n < l.Mark || p.Urgent {
		return false
	}
	if l.Step {
		return true
	}
	l.owed += 1 - float64(l.Mark-1)/float64(n)
	if l.owed < 1 {
		return false
	}
	l.owed--
	return true
}

// next puts the next packet on the wire.
func (l *Link) next(now int64) {
	switch {
	case l.first.len() > 0:
		l.current = l.first.pop()
	case l.normal.len() > 0:
		l.current = l.normal.pop()
	default:
		return
	}
	l.kernel.At(now+int64(l.current.Bytes)*l.perByte, kernel.Completion, l, 0)
}

// Fire implements kernel.Actor: a packet has left.
func (l *Link) Fire(now int64, _ int32) {
	p := l.current
	l.current = nil
	l.Sent += int64(p.Bytes)
	l.waiting -= p.Bytes
	l.kernel.At(now+l.delay, kernel.Arrival, p, arrive)
	l.next(now)
}

// fifo is a queue of packets that reuses its memory.
type fifo struct {
	items []*Packet // a ring whose length is a power of two
	head  int
	n     int
}

func (q *fifo) len() int { return q.n }

func (q *fifo) push(p *Packet) {
	if q.n == len(q.items) {
		grown := make([]*Packet, max(16, 2*q.n))
		for i := range q.n {
			grown[i] = q.items[(q.head+i)&(q.n-1)]
		}
		q.items, q.head = grown, 0
	}
	q.items[(q.head+q.n)&(len(q.items)-1)] = p
	q.n++
}

func (q *fifo) pop() *Packet {
	p := q.items[q.head]
	q.items[q.head] = nil
	q.head = (q.head + 1) & (len(q.items) - 1)
	q.n--
	return p
}
