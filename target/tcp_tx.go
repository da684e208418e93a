package target

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/prefetch"
	"lunar/target/pdu"
)

const (
	// maxQueued bounds the PDUs that wait for a peer that does not read:
	// beyond it nothing more is received from it.
	maxQueued = 4096
	// maxOwn bounds their data likewise, in bytes, as far as it lies in no
	// buffer of the pool: nobody else counts it.
	maxOwn = 1 << 20
	// flushFrom is how many queued data bytes leave at once rather than at
	// the end of the pass, while they are in the CPU's cache.
	flushFrom = 256 << 10
	// lendTime is how long what was lent may wait for a peer that does not
	// read: then it is copied, so that those who want to change it can.
	lendTime = 20 * time.Millisecond
	// prefetchUpTo is the most bytes of a Data-In that are brought into the CPU's
	// cache as soon as they are queued. The memory of a long one is fetched ahead
	// by the copy into the socket itself.
	prefetchUpTo = 16 << 10
	// sendMost is what small PDUs that leave together come to at most, in bytes: what
	// the kernel makes one segment of, which the device or the receiving end divides
	// (64 KiB less room for headers, as a whole number of Ethernet's segments). The
	// few bytes beyond it would cost as much again.
	sendMost = 65160
	// maxIOV is how many pieces one sendmsg takes (UIO_MAXIOV).
	maxIOV = 1024
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

// txState is the queue of outgoing PDUs: a ring that grows up to what
// maxQueued and the command window allow.
type txState struct {
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
	away      away
}

func (tx *txState) pending() bool { return tx.head != tx.tail }

func (tx *txState) full() bool { return tx.tail-tx.head >= maxQueued || tx.own >= maxOwn }

func (tx *txState) at(i uint32) *outgoing { return &tx.ring[i&uint32(len(tx.ring)-1)] }

// push returns the next free place of the ring.
func (tx *txState) push() *outgoing {
	if int(tx.tail-tx.head) == len(tx.ring) {
		tx.grow()
	}
	o := tx.at(tx.tail)
	tx.tail++
	return o
}

func (tx *txState) grow() {
	ring := make([]outgoing, max(64, 2*len(tx.ring)))
	for i := tx.head; i != tx.tail; i++ {
		ring[i&uint32(len(ring)-1)] = *tx.at(i)
	}
	tx.ring = ring
}

// pop forgets the first PDU, which is sent or dropped.
func (tx *txState) pop() {
	o := tx.at(tx.head)
	tx.bytes -= len(o.data)
	switch {
	case o.ref == nil:
		tx.own -= len(o.data)
	case o.ref.Lent():
		tx.lent--
	}
	releaseRef(o.ref)
	o.ref, o.data = nil, nil
	tx.sent = 0
	if tx.head++; !tx.pending() {
		tx.head, tx.tail = 0, 0 // the next one comes to where the CPU's cache has the ring
	}
}

func (tx *txState) drop() {
	for tx.pending() {
		tx.pop()
	}
}

// SendControl implements Datamover.
func (m *tcpMover) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) { m.send(bhs, data, ref) }

// Resend implements Resender.
func (m *tcpMover) Resend(bhs *pdu.BHS, data []byte) {
	if !m.closed {
		m.send(bhs, data, nil)
		m.tx.at(m.tx.tail - 1).again = true
	}
}

// GetData implements Datamover.
func (m *tcpMover) GetData(bhs *pdu.R2T) { m.send(bhs.BHS(), nil, nil) }

// PutData implements Datamover.
func (m *tcpMover) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	if len(data) <= prefetchUpTo {
		prefetch.Bytes(data) // until they leave, others are executed
	}
	m.send(bhs.BHS(), data, ref)
	if !bhs.HasStatus() {
		m.tx.ready-- // part of a response
	}
	if m.tx.bytes >= flushFrom {
		m.flushNow()
	}
}

// send queues a PDU. Its sequence numbers and digests are set when it leaves.
func (m *tcpMover) send(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	if m.closed {
		releaseRef(ref)
		return
	}
	length := pdu.BHSLength + len(data)
	if m.tx.ready >= m.room.Batch() || m.tx.gathered > 0 && m.tx.gathered+length > sendMost && len(data) <= prefetchUpTo {
		m.flushNow() // before this one, so that the task of the last has given back its place in the command window
	}
	m.tx.ready++
	m.tx.gathered += length
	o := m.tx.push()
	*(*pdu.BHS)(o.head[:]) = *bhs
	o.data, o.ref, o.stamped, o.again = data, ref, false, false
	m.tx.bytes += len(data)
	switch {
	case ref == nil:
		m.tx.own += len(data)
	case ref.Lent():
		m.tx.lent++
		m.boundLoans()
	}
	m.scheduleFlush()
}

// boundLoans sees to it that what was lent is given back in time.
func (m *tcpMover) boundLoans() {
	if m.tx.blocked && m.tx.lent > 0 && !m.tx.copying.Armed() {
		m.loop.Arm(&m.tx.copying, lendTime)
	}
}

// copyLoans is the timer: what the peer has not taken by now is copied to
// buffers of the pool. Without buffers it is tried again.
func (m *tcpMover) copyLoans() {
	if m.closed || m.stalledFor() < lendTime {
		m.boundLoans()
		return
	}
	for i := m.tx.head; i != m.tx.tail && m.tx.lent > 0; i++ {
		o := m.tx.at(i)
		if o.ref == nil || !o.ref.Lent() {
			continue
		}
		own := m.loop.Pool().Get(len(o.data))
		if own == nil {
			break
		}
		own.ChargeAs(o.ref)
		buf.Copy(own.Bytes(), o.data)
		o.ref.Release()
		o.data, o.ref = own.Bytes(), own
		m.tx.lent--
	}
	m.boundLoans()
}

func (m *tcpMover) scheduleFlush() {
	if !m.tx.scheduled && !m.tx.blocked && !m.tx.away.busy {
		m.tx.scheduled = true
		m.loop.AtPassEnd(m.tx.flush)
	}
}

// stamp sets what is known only when the PDU leaves.
func (m *tcpMover) stamp(o *outgoing) {
	o.stamped = true
	bhs := (*pdu.BHS)(o.head[:])
	if o.again {
		m.r.Restamp(bhs)
	} else {
		m.r.Stamp(bhs)
	}
	o.headLen = pdu.BHSLength
	if m.headerDigest {
		pdu.HeaderDigest(bhs, nil).Put(o.head[pdu.BHSLength:])
		o.headLen += pdu.DigestLength
	}
	padding := pdu.Padding(len(o.data))
	o.tailLen = uint8(padding)
	clear(o.tail[:padding])
	if m.dataDigest && len(o.data) > 0 {
		pdu.DataDigest(o.data, o.tail[:padding]).Put(o.tail[padding:])
		o.tailLen += pdu.DigestLength
	}
}

// flushAtEnd is the pass-end task.
func (m *tcpMover) flushAtEnd() {
	m.tx.scheduled = false
	if m.closed {
		return
	}
	defer m.r.Contain()
	err := m.flush()
	if err != nil {
		m.Close(fmt.Errorf("send: %w", err), false)
		return
	}
	if m.why != nil {
		if !m.tx.pending() {
			m.end()
		}
		return
	}
	m.r.Drained()
	if m.rx.stalled && !m.tx.full() {
		m.rx.stalled = false
		m.receiveLater()
	}
}

// flushNow sends ahead of the pass's end; errors are left for flushAtEnd,
// because the caller is in the middle of a command.
func (m *tcpMover) flushNow() {
	if !m.tx.blocked {
		_ = m.flush() // a broken socket fails again at the end of the pass
	}
}

// flush sends what is queued until the socket takes no more, or another thread
// has it to send: one sendmsg for up to maxIOV pieces.
func (m *tcpMover) flush() error {
	m.tx.ready, m.tx.gathered = 0, 0
	for m.tx.pending() && !m.tx.blocked && !m.tx.away.busy {
		iov, bytes, sender := m.gather()
		if sender != nil {
			m.sendAway(sender, iov, bytes)
			return nil
		}
		n, errno := evloop.Sendmsg(m.fd, iov, 0)
		if err := m.sent(n, bytes, errno); err != nil {
			return err
		}
	}
	return nil
}

func (m *tcpMover) block() {
	m.tx.blocked, m.tx.since = true, m.loop.Now()
	m.boundLoans()
}

// Owed implements Debtor.
func (m *tcpMover) Owed() Owed {
	return Owed{
		Untaken: m.tx.pending(), Taken: m.tx.total,
		Partial: m.rx.busy() && !m.rx.stalled && !m.rx.late, Came: m.rx.total,
	}
}

// stalledFor is how long the peer has made no room for what it is owed.
func (m *tcpMover) stalledFor() time.Duration {
	if !m.tx.blocked {
		return 0
	}
	return time.Duration(m.loop.Now() - m.tx.since)
}

// gather fills the room's iovec from the queue, with what one thread is to
// send: sender, or this one if it is nil. PDUs that do not care go with the others.
func (m *tcpMover) gather() (iov []unix.Iovec, bytes int, sender *evloop.Loop) {
	iov = m.room.sendv[:0]
	skip, most, decided := m.tx.sent, maxIOV, false
	for i := m.tx.head; i != m.tx.tail && len(iov)+3 <= most; i++ {
		o := m.tx.at(i)
		if loop, cares := m.sender(o); cares {
			if decided && loop != sender {
				break
			}
			if sender, decided = loop, true; sender != nil {
				most = awayIOV
			}
		}
		if !o.stamped {
			m.stamp(o)
		}
		for _, piece := range [...][]byte{o.head[:o.headLen], o.data, o.tail[:o.tailLen]} {
			if skip >= len(piece) {
				skip -= len(piece)
				continue
			}
			piece = piece[skip:]
			skip = 0
			iov = iov[:len(iov)+1]
			v := &iov[len(iov)-1]
			v.Base = &piece[0]
			v.SetLen(len(piece))
			bytes += len(piece)
		}
	}
	return iov, bytes, sender
}

// sender is the thread that is to send a PDU, nil for this one, and whether it
// matters: small ones go with any.
func (m *tcpMover) sender(o *outgoing) (loop *evloop.Loop, cares bool) {
	if o.ref == nil {
		return nil, false
	}
	if node, ok := o.ref.Node(); ok {
		return m.r.Sender(node), true
	}
	return nil, len(o.data) >= flushFrom/4
}

// advance takes n sent bytes off the queue.
func (m *tcpMover) advance(n int) {
	m.tx.sent += n
	m.tx.total += uint64(n)
	for m.tx.pending() {
		o := m.tx.at(m.tx.head)
		length := o.length()
		if !o.stamped || m.tx.sent < length { // one that came while others were sent has no length yet
			return
		}
		rest := m.tx.sent - length
		m.tx.pop()
		m.tx.sent = rest
	}
}
