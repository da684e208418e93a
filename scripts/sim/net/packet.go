package net

import "lunar/scripts/sim/kernel"

// Sizes of packets in bytes.
const (
	MTU     = 1500
	Payload = 1460 // of a packet of MTU
	header  = MTU - Payload
)

// Owner is who sent a packet.
type Owner interface {
	// Arrived is called when a packet has come to the end of its path.
	Arrived(now int64, p *Packet)
	// Acknowledged is called later for a packet for whose acknowledgement the owner
	// asked by Packet.Acknowledge, and Lost for one that a queue had no room for.
	Acknowledged(now int64, p *Packet)
	Lost(now int64, p *Packet)
}

// Packet is on its way. Its owner may send it again once it has arrived or was
// acknowledged.
type Packet struct {
	Bytes  int // on the wire
	Urgent bool
	Marked bool // some queue was long
	Owner  Owner
	Path   []*Link
	Tag    int64 // the owner's
	Left   int64 // when it was sent

	message *Message
	payload int64
	hop     int
}

// What the events of a packet mean.
const (
	arrive int32 = iota
	acknowledge
	lose
)

// lossDelay is how long the sender of a lost packet takes to hear of it, in ps: three
// later acknowledgements, at best.
const lossDelay = 25 * Microsecond

// Send puts a packet on the first link of its path.
func (p *Packet) Send() {
	p.hop, p.Marked, p.Left = 0, false, p.Path[0].kernel.Now()
	p.Path[0].send(p)
}

// Acknowledge has the owner told after a delay in ps that the packet arrived.
func (p *Packet) Acknowledge(now, delay int64) {
	k := p.Path[0].kernel
	k.At(now+delay, kernel.Arrival, p, acknowledge)
}

func (p *Packet) drop() {
	k := p.Path[0].kernel
	k.At(k.Now()+lossDelay, kernel.Arrival, p, lose)
}

// Fire implements kernel.Actor.
func (p *Packet) Fire(now int64, what int32) {
	switch {
	case what == acknowledge:
		p.Owner.Acknowledged(now, p)
	case what == lose:
		p.Owner.Lost(now, p)
	case p.hop == len(p.Path)-1:
		p.Owner.Arrived(now, p)
	default:
		p.hop++
		p.Path[p.hop].send(p)
	}
}

// WireBytes is how many bytes a message of so many needs on the wire in packets.
func WireBytes(bytes int64) int64 { return bytes + header*((bytes+Payload-1)/Payload) }
