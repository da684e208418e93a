package tcp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/pdu"
)

// mover is the Datamover of iSCSI over TCP (RFC 7143). It owns the socket
// and belongs to its connection's event thread. This file has its state,
// the queue of what it sends and its end; receiving is in receive.go, sending in
// send.go.
type mover struct {
	fd      int
	loop    *evloop.Loop
	all     scratches // of all threads
	scratch *scratch  // of its own
	r       target.Receiver

	headerDigest, dataDigest bool
	maxRecv                  int // longest data segment that we declared to take
	maxDataIn                int // longest data segment that the initiator takes

	rx receiver
	tx sender

	gov    *governor // of what it sends; nil: only the kernel bounds that
	dscp   uint8     // that it sends with; 0: the system's
	why    error     // the end, once it is decided
	drain  evloop.Timer
	closed bool
}

// drainTime bounds how long a closing connection may take to accept what is
// queued for it.
const drainTime = 5 * time.Second

// receiver is where a mover stands in the byte stream.
type receiver struct {
	again evloop.Task
	due   bool   // again is queued
	ahead bool   // large data segments are coming
	rest  []byte // bytes of PDUs that have not arrived completely or are not taken yet
	taken int    // of them, those that are done with: only while late is set
	late  bool   // whole PDUs are among them, which wait for the connection's turn or the send queue
	reach int    // bytes that are read at once

	receiving bool // PDUs are being taken

	stalled bool // nothing is taken until the send queue is shorter
	ending  bool // the peer has closed: no new edge will tell what is left to read

	total uint64 // bytes that have come

	// A PDU whose data segment is on the way to its place.
	placing  bool
	bhs      pdu.BHS
	ahs      []byte
	place    []byte // the whole data segment
	got      int
	tailWant int // padding and digest bytes behind it
}

func (rx *receiver) busy() bool { return rx.placing || len(rx.rest) > 0 }

func (rx *receiver) discard() { rx.rest, rx.place, rx.ahs = nil, nil, nil }

func (m *mover) receiveLater() {
	if !m.rx.due && !m.closed {
		m.rx.due = true
		m.loop.Again(m.rx.again)
	}
}

// Attach implements Datamover.
func (m *mover) Attach(r target.Receiver, loop *evloop.Loop) error {
	m.r, m.loop, m.scratch = r, loop, m.all[loop]
	if m.scratch == nil {
		return fmt.Errorf("event thread %s is none of those that TCP was opened for", loop.Name())
	}
	return loop.Register(m.fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|unix.EPOLLET, m)
}

// Detach implements Datamover.
func (m *mover) Detach() bool {
	if m.closed || m.why != nil || m.tx.pending() || m.tx.scheduled || m.rx.busy() || m.rx.due {
		return false
	}
	m.loop.Disarm(&m.tx.copying)
	if m.gov != nil {
		m.govern(target.NetworkClass{})
	}
	return m.loop.Unregister(m.fd) == nil
}

// MaxDataIn implements Datamover.
func (m *mover) MaxDataIn() int { return m.maxDataIn }

// SetMaxDataIn follows a new declaration of the initiator.
func (m *mover) SetMaxDataIn(n int) { m.maxDataIn = n }

// Close implements Datamover.
func (m *mover) Close(why error, drain bool) {
	if m.closed {
		return
	}
	if m.why == nil {
		m.why = why
	}
	if !drain || m.r == nil || !m.tx.pending() {
		m.end()
		return
	}
	m.loop.Arm(&m.drain, drainTime)
}

// end closes the socket and tells the receiver.
func (m *mover) end() {
	if m.closed {
		return
	}
	m.closed = true
	if m.r == nil { // never attached
		unix.Close(m.fd)
		return
	}
	m.loop.Disarm(&m.drain)
	m.loop.Disarm(&m.tx.copying)
	if m.gov != nil {
		m.gov.end()
	}
	m.loop.Unregister(m.fd)
	if !m.tx.remote.busy { // else it follows when that is back
		m.release()
	}
}

// release gives back what a closed transport still has.
func (m *mover) release() {
	unix.Close(m.fd)
	m.tx.discard()
	m.rx.discard()
	m.r.Closed(m.why)
}

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
	scheduled bool
	last      bool  // it has let others of the pass go first
	behind    bool  // it goes behind those of the pass who get no turn
	held      bool  // the governor lets nothing leave
	blocked   bool  // the socket takes no more until EPOLLOUT
	since     int64 // when it began to take no more, on the loop's clock
	ring      []outgoing
	head      uint32 // first PDU that is not completely sent
	tail      uint32
	sent      int    // bytes of the first PDU that are sent
	total     uint64 // bytes sent of all
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
	case o.ref == nil, o.again:
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
