package tcp

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/pdu"
)

// mover is the Datamover of iSCSI over TCP (RFC 7143). It owns the socket
// and belongs to its connection's event thread. Receiving is in receive.go,
// sending in send.go.
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

	why    error // the end, once it is decided
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
