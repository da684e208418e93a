package net

import "lunar/scripts/sim/kernel"

// Message is what a flow carries as a whole.
type Message struct {
	Bytes int64
	Done  func(now int64) // called when all bytes have arrived; nil is nobody
	At    int64           // when it was given to the flow

	left    int64 // not sent yet
	missing int64 // not arrived yet
}

// Control decides when a flow may send.
type Control interface {
	// Window is how many packets may be under way.
	Window() float64
	// Gap is the least time in ps between two packets of so many bytes; 0 is none.
	Gap(bytes int) int64
	// Acknowledged tells of a packet, after the flow's counters have changed.
	Acknowledged(now int64, f *Flow, p *Packet)
	// Lost tells of a packet that a queue had no room for.
	Lost()
}

// Flow is a connection: it carries messages in order over a path, in packets.
type Flow struct {
	Control
	Pace   int64        // ps between two packets: what the sender offers; 0 is no bound
	Urgent bool         // its packets go first, and are not marked
	Late   func() int64 // ps by which an acknowledgement is late; nil: none is

	Delivered int64 // bytes of messages that have arrived
	Acked     int64 // bytes on the wire that are acknowledged
	Sent      int64 // packets, those sent again included

	kernel   *kernel.Kernel
	path     []*Link
	back     int64 // ps from an arrival to its acknowledgement
	endless  bool
	messages []*Message
	again    []*Packet // lost ones
	free     []*Packet
	underWay int
	next     int64 // when the next packet may leave
	planned  bool  // an event for next
	filled   int   // most packets under way since use was called
	limited  bool  // the window had no room since then
}

// NewFlow returns a flow over a path whose acknowledgements need back ps.
func NewFlow(k *kernel.Kernel, c Control, path []*Link, back int64) *Flow {
	return &Flow{Control: c, kernel: k, path: path, back: back}
}

// SendEndless makes the flow send packets of MTU for ever, or no longer.
func (f *Flow) SendEndless(on bool) {
	f.endless = on
	f.send()
}

// Send takes a message.
func (f *Flow) Send(m *Message) {
	m.left, m.missing, m.At = m.Bytes, m.Bytes, f.kernel.Now()
	f.messages = append(f.messages, m)
	f.send()
}

// Waiting is how many messages have not been sent wholly.
func (f *Flow) Waiting() int { return len(f.messages) }

// Oldest is the time at which the message that is being sent was given; false if there is
// none.
func (f *Flow) Oldest() (at int64, ok bool) {
	if len(f.messages) == 0 {
		return 0, false
	}
	return f.messages[0].At, true
}

// UnderWay is how many packets are not acknowledged.
func (f *Flow) UnderWay() int { return f.underWay }

// use returns how many packets were under way at most since the last call, and whether
// the window was what bounded them.
func (f *Flow) use() (packets int, limited bool) {
	packets, limited = f.filled, f.limited
	f.filled, f.limited = f.underWay, false
	return packets, limited
}

// send sends what it may.
func (f *Flow) send() {
	now := f.kernel.Now()
	for f.hasData() {
		if float64(f.underWay+1) > f.Window() {
			f.limited = true
			return
		}
		if now < f.next {
			f.plan()
			return
		}
		p := f.packet()
		f.underWay++
		f.Sent++
		f.filled = max(f.filled, f.underWay)
		f.next = max(f.next, now-f.Pace) + max(f.Pace, f.Gap(p.Bytes))
		p.Tag = f.Sent
		p.Send()
	}
}

func (f *Flow) hasData() bool { return f.endless || len(f.messages) > 0 || len(f.again) > 0 }

// plan has the flow woken when its next packet may leave.
func (f *Flow) plan() {
	if !f.planned {
		f.planned = true
		f.kernel.At(f.next, kernel.TokenTick, f, 0)
	}
}

// Fire implements kernel.Actor.
func (f *Flow) Fire(int64, int32) {
	f.planned = false
	f.send()
}

// packet returns the next packet: a lost one, or the next of what is to be sent.
func (f *Flow) packet() *Packet {
	if n := len(f.again); n > 0 {
		p := f.again[n-1]
		f.again = f.again[:n-1]
		return p
	}
	var p *Packet
	if n := len(f.free); n > 0 {
		p, f.free = f.free[n-1], f.free[:n-1]
	} else {
		p = &Packet{Owner: f, Path: f.path}
	}
	p.message, p.payload = nil, Payload
	if !f.endless {
		m := f.messages[0]
		p.message, p.payload = m, min(Payload, m.left)
		if m.left -= p.payload; m.left == 0 {
			f.messages = f.messages[1:]
		}
	}
	p.Bytes, p.Urgent = int(p.payload)+header, f.Urgent
	return p
}

// Arrived implements Owner.
func (f *Flow) Arrived(now int64, p *Packet) {
	f.Delivered += p.payload
	back := f.back
	if f.Late != nil {
		back += f.Late()
	}
	p.Acknowledge(now, back)
	if m := p.message; m != nil {
		if m.missing -= p.payload; m.missing == 0 && m.Done != nil {
			m.Done(now)
		}
	}
}

// Acknowledged implements Owner.
func (f *Flow) Acknowledged(now int64, p *Packet) {
	f.underWay--
	f.Acked += int64(p.Bytes)
	f.Control.Acknowledged(now, f, p)
	f.free = append(f.free, p)
	f.send()
}

// Lost implements Owner.
func (f *Flow) Lost(_ int64, p *Packet) {
	f.underWay--
	f.Control.Lost()
	f.again = append(f.again, p)
	f.send()
}
