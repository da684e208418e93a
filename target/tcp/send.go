package tcp

import (
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/prefetch"
	"lunar/target"
	"lunar/target/pdu"
)

const (
	// flushFrom is how many queued data bytes leave before the end of the pass. Less would
	// be a send for each long read, which costs the kernel more than one of several.
	flushFrom = 2 << 20
	// remoteFrom is how long the data of a PDU are for which it matters which NUMA node's
	// thread sends them.
	remoteFrom = 64 << 10
	// lendTime is how long what was lent may wait for a peer that does not
	// read: then it is copied, so that those who want to change it can.
	lendTime = 20 * time.Millisecond
	// prefetchUpTo is the most bytes of a Data-In that are brought into the CPU's
	// cache as soon as they are queued. The memory of a long one is fetched ahead
	// by the copy into the socket itself.
	prefetchUpTo = 16 << 10
	// earlyFrom is how many queued PDUs leave before the end of the pass, and
	// earlySends how often in a pass of the thread: the initiator works on them while
	// the other commands are executed. All else leaves together.
	earlyFrom, earlySends = 8, 3
	// passTime is how long, in nanoseconds, the long sends of all connections may take in
	// one pass, and passSent how many bytes, whichever comes first: a peer that makes room
	// after a while has megabytes of it, which nobody else is to wait for. Those for whom
	// nothing is left go on in the next pass, in the order in which they wait.
	passTime = 200_000
	passSent = 2 << 20
	// longFrom is how many bytes are so long a send that it is timed, and goes after the
	// short ones of the pass, which wait for nobody.
	longFrom = 16 << 10
	// leastPart is what a long send has at least. In parts of less each would cost the
	// kernel more than its bytes do.
	leastPart = 64 << 10
)

// SendControl implements Datamover.
func (m *mover) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) { m.send(bhs, data, ref) }

// GetData implements Datamover.
func (m *mover) GetData(bhs *pdu.R2T) { m.send(bhs.BHS(), nil, nil) }

// PutData implements Datamover.
func (m *mover) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	if len(data) <= prefetchUpTo {
		prefetch.Bytes(data) // until they leave, others are executed
	}
	m.send((*pdu.BHS)(bhs), data, ref)
	if m.tx.bytes >= flushFrom && !m.loop.Ordered() {
		m.flushNow()
	}
}

// Resend implements Resender.
func (m *mover) Resend(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	m.send(bhs, data, ref)
	if m.closed {
		return
	}
	m.tx.at(m.tx.tail - 1).again = true
	if ref != nil {
		m.tx.own += len(data) // no command's memory bounds it
	}
}

// send queues a PDU. Its sequence numbers and digests are set when it leaves.
func (m *mover) send(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	if m.closed {
		if ref != nil {
			ref.Release()
		}
		return
	}
	if m.tx.tail-m.tx.head >= earlyFrom && m.flushable() && m.scratch.sendsEarly(m.loop.Now()) {
		m.flushNow() // before this one, so that the task of the last has given back its place in the command window
	}
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

func (m *mover) scheduleFlush() {
	if !m.tx.scheduled && !m.tx.blocked && !m.tx.held && !m.tx.remote.busy {
		m.tx.scheduled = true
		m.loop.AtPassEnd((*passEnd)(m))
	}
}

// passEnd is what a mover does at the end of a pass: it sends what is queued.
type passEnd mover

// Run implements evloop.Task.
func (p *passEnd) Run() {
	m := (*mover)(p)
	if m.tx.behind {
		m.tx.behind = false
		m.loop.Again(p)
		return
	}
	long := m.tx.bytes >= longFrom
	if long && !m.tx.last {
		m.tx.last = true
		m.loop.AtPassEnd(p) // short ones first
		return
	}
	m.tx.scheduled, m.tx.last = false, false
	if m.closed {
		return
	}
	if long && m.flushable() && !m.scratch.admits(m.loop.Now()) {
		m.tx.scheduled = true
		m.loop.Again(p)
		return
	}
	defer m.r.Contain()
	err := m.flush()
	for err == nil && m.flushable() && m.scratch.hasRoom(m.loop.Now()) { // a part at a time, so that others may go before the rest
		m.loop.Yield()
		err = m.flush()
	}
	if m.closed {
		return
	}
	if err != nil {
		m.Close(fmt.Errorf("send: %w", err), false)
		return
	}
	if m.flushable() {
		m.tx.scheduled, m.tx.behind = true, true
		m.loop.AtPassEnd(p) // behind those who get no turn in this pass
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

// flushNow sends ahead of the pass's end; errors are left for passEnd,
// because the caller is in the middle of a command.
func (m *mover) flushNow() {
	if !m.tx.blocked && m.scratch.hasRoom(m.loop.Now()) {
		_ = m.flush() // a broken socket fails again at the end of the pass
	}
}

// flush sends what is queued until the socket takes no more, another thread has it to
// send, or the connection's part of the pass is sent: one sendmsg for up to maxIOV pieces.
func (m *mover) flush() error {
	room := m.scratch.room(m.loop.Now())
	if m.gov != nil && m.flushable() {
		room = min(room, m.gov.room())
	}
	for part := false; m.flushable() && !part; part = room <= 0 || m.loop.Ordered() {
		iov, bytes, sender := m.gather(min(room, m.loop.Part()))
		if sender != nil {
			m.sendRemotely(sender, iov, bytes)
			return nil
		}
		n, errno := m.scratch.send(m.fd, iov, bytes)
		room -= bytes
		if err := m.sent(n, bytes, errno); err != nil {
			return err
		}
	}
	return nil
}

// flushable reports whether something is queued that may be sent now.
func (m *mover) flushable() bool {
	return m.tx.pending() && !m.tx.blocked && !m.tx.held && !m.tx.remote.busy
}

// gather fills the thread's iovec from the queue, with what one thread is to
// send: sender, or this one if it is nil, and at most room bytes. PDUs that do not care go
// with the others.
func (m *mover) gather(room int) (iov []unix.Iovec, bytes int, sender *evloop.Loop) {
	iov = m.scratch.sendv[:0]
	skip, most, decided := m.tx.sent, maxIOV, false
	for i := m.tx.head; i != m.tx.tail && len(iov)+3 <= most && bytes < room; i++ {
		o := m.tx.at(i)
		if m.tx.lent > 0 { // else this thread sends all
			if loop, cares := m.sender(o); cares {
				if decided && loop != sender {
					break
				}
				if sender, decided = loop, true; sender != nil {
					most = remoteIOV
				}
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
			piece = piece[:min(len(piece), room-bytes)]
			v.SetLen(len(piece))
			bytes += len(piece)
		}
	}
	return iov, bytes, sender
}

// sender is the thread that is to send a PDU, nil for this one, and whether it
// matters: small ones go with any.
func (m *mover) sender(o *outgoing) (loop *evloop.Loop, cares bool) {
	if o.ref == nil {
		return nil, false
	}
	if node, ok := o.ref.Node(); ok {
		return m.r.Sender(node), true
	}
	return nil, len(o.data) >= remoteFrom
}

// stamp sets what is known only when the PDU leaves.
func (m *mover) stamp(o *outgoing) {
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

// sent takes the result of a sendmsg of bytes.
func (m *mover) sent(n, bytes int, errno unix.Errno) error {
	if errno == unix.EAGAIN {
		m.block()
		return nil
	}
	if errno != 0 {
		return syscall.Errno(errno)
	}
	m.advance(n)
	if n < bytes {
		m.block()
	}
	return nil
}

// advance takes n sent bytes off the queue.
func (m *mover) advance(n int) {
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

func (m *mover) block() {
	m.tx.blocked, m.tx.since = true, m.loop.Now()
	m.boundLoans()
}

// writable goes on after the socket has refused data. The event comes only once,
// also when it overtakes the result of a sendmsg that was made elsewhere.
func (m *mover) writable() {
	m.tx.remote.room = true
	if m.tx.blocked {
		m.tx.blocked = false
		m.scheduleFlush()
	}
}

// boundLoans sees to it that what was lent is given back in time.
func (m *mover) boundLoans() {
	if (m.tx.blocked || m.tx.held) && m.tx.lent > 0 && !m.tx.copying.Armed() {
		m.loop.Arm(&m.tx.copying, lendTime)
	}
}

// copyLoans is the timer: what the peer has not taken by now is copied to
// buffers of the pool. Without buffers it is tried again.
func (m *mover) copyLoans() {
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

// stalledFor is how long the peer has made no room for what it is owed.
func (m *mover) stalledFor() time.Duration {
	if !m.tx.blocked && !m.tx.held {
		return 0
	}
	return time.Duration(m.loop.Now() - m.tx.since)
}

// Owed implements Debtor.
func (m *mover) Owed() target.Owed {
	return target.Owed{
		Untaken: m.tx.pending(), Taken: m.tx.total,
		Partial: m.rx.busy() && !m.rx.stalled && !m.rx.late, Came: m.rx.total,
	}
}
