package tcp

import (
	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/pdu"
)

const (
	// maxQueued bounds the PDUs that wait for a peer that does not read:
	// beyond it nothing more is received from it.
	maxQueued = 4096
	// maxOwn bounds their data likewise, in bytes, as far as it lies in no
	// buffer of the pool: nobody else counts it.
	maxOwn = 1 << 20
)

// outgoing is one PDU on its way out.
type outgoing struct {
	data    []byte
	ref     *buf.Ref // released when sent
	stamped bool
	again   bool // it has its sequence numbers from the first time
	headLen uint8
	tailLen uint8
	head    [pdu.BHSLength + pdu.DigestLength]byte
	tail    [3 + pdu.DigestLength]byte // padding and data digest
}

func (o *outgoing) length() int { return int(o.headLen) + len(o.data) + int(o.tailLen) }

// sender is a mover's queue of outgoing PDUs: a ring that grows up to what
// maxQueued and the command window allow.
type sender struct {
	flush     evloop.Task
	scheduled bool
	blocked   bool  // the socket takes no more until EPOLLOUT
	since     int64 // when it began to take no more, on the loop's clock
	ring      []outgoing
	head      uint32 // first PDU that is not completely sent
	tail      uint32
	sent      int    // bytes of the first PDU that are sent
	total     uint64 // bytes sent of all
	ready     int    // responses queued since the last flush
	gathered  int    // bytes of the PDUs queued since then
	bytes     int    // data bytes queued
	own       int    // of them, those without a buffer
	lent      int    // PDUs queued whose data are lent
	copying   evloop.Timer
	remote    remoteSend
}

func (tx *sender) pending() bool { return tx.head != tx.tail }

func (tx *sender) full() bool { return tx.tail-tx.head >= maxQueued || tx.own >= maxOwn }

func (tx *sender) at(i uint32) *outgoing { return &tx.ring[i&uint32(len(tx.ring)-1)] }

// push returns the next free place of the ring.
func (tx *sender) push() *outgoing {
	if int(tx.tail-tx.head) == len(tx.ring) {
		tx.grow()
	}
	o := tx.at(tx.tail)
	tx.tail++
	return o
}

func (tx *sender) grow() {
	ring := make([]outgoing, max(64, 2*len(tx.ring)))
	for i := tx.head; i != tx.tail; i++ {
		ring[i&uint32(len(ring)-1)] = *tx.at(i)
	}
	tx.ring = ring
}

// pop forgets the first PDU, which is sent or dropped.
func (tx *sender) pop() {
	o := tx.at(tx.head)
	tx.bytes -= len(o.data)
	switch {
	case o.ref == nil:
		tx.own -= len(o.data)
	case o.ref.Lent():
		tx.lent--
	}
	if o.ref != nil {
		o.ref.Release()
	}
	o.ref, o.data = nil, nil
	tx.sent = 0
	if tx.head++; !tx.pending() {
		tx.head, tx.tail = 0, 0 // the next one comes to where the CPU's cache has the ring
	}
}

func (tx *sender) discard() {
	for tx.pending() {
		tx.pop()
	}
}

// remoteSend is a sendmsg that a thread of another NUMA node makes for the
// connection, because most of the data lie in that node's memory: the copy into
// the socket is then a local one. Only the system call is made there; the queue,
// the sequence numbers and the result stay with the connection's own thread,
// which sends nothing meanwhile, so that the order is kept.
//
// INVARIANT: while busy, no queued PDU changes and the socket stays open.
type remoteSend struct {
	mover *mover
	back  *evloop.Loop
	iov   []unix.Iovec
	bytes int
	busy  bool
	room  bool   // while busy: the socket has become writable, which the sendmsg may have come too early for
	sends uint64 // so far

	sent  int // of the system call
	errno unix.Errno
}
