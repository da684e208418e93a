package tcp

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/pdu"
)

const (
	// rxAhead is what is read into the scratch while large data segments
	// are expected: headers, so that little data has to be copied out of it.
	rxAhead = 4 << 10
	// readsPerPass bounds the bytes of one connection per pass, for fairness. What
	// they ask for is bounded by Receiver.Spent.
	readsPerPass = 4
	// readLeast is what is read at once of a connection that has sent more than its
	// share of work: what waits is kept for it.
	readLeast = 16 << 10
)

// errProtocol and errPeerClosed are why connections end.
var (
	errProtocol   = errors.New("protocol error")
	errPeerClosed = errors.New("the initiator closed the connection")
)

// Ready implements evloop.Poller.
func (m *mover) Ready(events uint32) {
	defer m.r.Contain()
	if events&unix.EPOLLOUT != 0 {
		m.writable()
	}
	if events&^(unix.EPOLLOUT|unix.EPOLLIN) != 0 {
		m.rx.ending = true
	}
	if events&^unix.EPOLLOUT != 0 {
		m.receive()
	}
	if m.loop.Ordered() && (m.loop.Ahead() || m.r.Promised()) {
		for m.flushable() && m.flush() == nil { // a broken socket fails again at the end of the pass
		}
	}
}

// Prior implements evloop.Prior.
//
// INVARIANT: a connection does not interrupt itself, so its PDUs are taken in order.
func (m *mover) Prior() bool { return !m.rx.receiving && m.r.Prior() }

// receive reads what is there, a bounded number of times, and acts on every
// complete PDU. Others may be served in between.
func (m *mover) receive() {
	m.rx.receiving = true
	m.receiveSome()
	m.rx.receiving = false
}

func (m *mover) receiveSome() {
	for range readsPerPass {
		if m.closed || m.why != nil || m.stalled() || !m.catchUp() {
			return
		}
		n, want, errno := m.read()
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			m.Close(fmt.Errorf("receive: %w", syscall.Errno(errno)), false)
			return
		case n == 0:
			m.Close(m.endOfStream(), false)
			return
		case n < want && !m.rx.ending:
			return // the socket is empty: the next bytes bring a new edge
		}
		m.loop.Yield()
	}
	m.receiveLater()
}

// Resume implements Datamover.
func (m *mover) Resume() {
	if !m.closed {
		defer m.r.Contain()
		m.receive()
	}
}

// catchUp delivers what earlier reads have left, and reports whether all of it was
// taken.
func (m *mover) catchUp() bool {
	rx := &m.rx
	if !rx.late {
		return true
	}
	rx.late = false
	if rest := m.parse(rx.rest[rx.taken:]); !m.closed {
		rx.taken = len(rx.rest) - len(rest)
	}
	if rx.late || m.closed || m.why != nil {
		return false
	}
	m.keep(rx.rest[rx.taken:])
	return true
}

// stalled reports whether the peer has to take what it is owed before anything
// is taken from it. The flush that brings room receives again.
func (m *mover) stalled() bool {
	m.rx.stalled = m.tx.full()
	return m.rx.stalled
}

func (m *mover) receiveAgain() {
	m.rx.due = false
	if m.closed {
		return
	}
	defer m.r.Contain()
	m.receive()
}

func (m *mover) endOfStream() error {
	if m.rx.busy() {
		return fmt.Errorf("%w in the middle of a PDU: %w", errPeerClosed, io.ErrUnexpectedEOF)
	}
	return errPeerClosed
}

// read does one system call and parses what it brought. want is what it could
// have brought.
func (m *mover) read() (n, want int, errno unix.Errno) {
	scratch := m.scratch.receive
	if m.loop.Ahead() {
		scratch = m.scratch.ahead
	}
	rest := copy(scratch, m.rx.rest)
	room := scratch[rest:]
	part := m.loop.Part()
	room = room[:min(len(room), m.rx.reach, part)]
	if m.rx.ahead && len(room) > rxAhead {
		room = room[:rxAhead]
	}
	placed, want := 0, len(room)
	if m.rx.placing && m.rx.got < len(m.rx.place) {
		place := m.rx.place[m.rx.got:]
		if len(place) > part {
			want = part
			n, errno = evloop.Read(m.fd, place[:want])
		} else {
			iov := &m.scratch.readv
			iov[0].Base, iov[1].Base = &place[0], &room[0]
			iov[0].SetLen(len(place))
			iov[1].SetLen(len(room))
			want += len(place)
			n, errno = evloop.Readv(m.fd, iov[:])
		}
		placed = min(n, len(place))
	} else {
		n, errno = evloop.Read(m.fd, room)
	}
	if errno != 0 || n == 0 {
		return n, want, errno
	}
	m.rx.got += placed
	m.rx.total += uint64(n)
	m.r.Heard()
	m.keep(m.parse(scratch[:rest+n-placed]))
	m.follow(n == want)
	return n, want, errno
}

// follow reads more at once from who sends much that is quickly done, and little
// from who has to wait for his turn.
func (m *mover) follow(more bool) {
	switch {
	case m.rx.late:
		m.rx.reach = readLeast
	case more:
		m.rx.reach = min(2*m.rx.reach, len(m.scratch.receive))
	}
}

// keep keeps what of the bytes was not taken, in place of what was kept before.
func (m *mover) keep(b []byte) {
	if m.closed {
		return
	}
	m.rx.taken = 0
	if len(b) == 0 && cap(m.rx.rest) > 4*readLeast { // more than PDUs in pieces need
		m.rx.rest = nil
		return
	}
	m.rx.rest = append(m.rx.rest[:0], b...)
}

// parse delivers the complete PDUs in b and returns what remains: the start of
// a PDU whose data segment has no place yet.
func (m *mover) parse(b []byte) []byte {
	for seen := 0; !m.closed && m.why == nil; m.loop.Yield() {
		if seen--; seen < 0 && !m.headerDigest && !m.dataDigest && !m.rx.placing {
			seen = m.r.Foresee(b)
		}
		if m.rx.placing {
			rest, done := m.parseTail(b)
			if !done {
				return rest
			}
			b = rest
			continue
		}
		if len(b) < pdu.BHSLength {
			break
		}
		if m.stalled() || m.r.Spent((*pdu.BHS)(b)) {
			m.rx.late = true
			break
		}
		rest, done := m.parsePDU(b)
		if !done {
			return rest
		}
		b = rest
	}
	return b
}

// parsePDU delivers the PDU at the start of b. done is false when more bytes
// are needed.
func (m *mover) parsePDU(b []byte) (rest []byte, done bool) {
	bhs := (*pdu.BHS)(b)
	ahsLength, n, whole := bhs.Lengths(m.headerDigest, m.dataDigest)
	if n > m.maxRecv {
		m.Close(fmt.Errorf("%w: data segment of %d bytes in %s, MaxRecvDataSegmentLength is %d",
			errProtocol, n, bhs.Opcode(), m.maxRecv), false)
		return nil, false
	}
	head := pdu.BHSLength + ahsLength
	ahs := b[pdu.BHSLength:min(head, len(b))]
	if m.headerDigest {
		head += pdu.DigestLength
	}
	if len(b) < head {
		return b, false
	}
	if m.headerDigest {
		if found, want := pdu.ReadDigest(b[head-pdu.DigestLength:head]), pdu.HeaderDigest(bhs, ahs); found != want {
			// The length cannot be trusted, so the stream cannot be
			// followed any more (RFC 7143 section 7.7).
			m.Close(fmt.Errorf("%w: found %#x, expected %#x", target.ErrHeaderDigest, uint32(found), uint32(want)), false)
			return nil, false
		}
	}
	if len(b) >= whole {
		data := b[head : head+n : head+n]
		m.r.Received(bhs, ahs, data, m.dataDigest && n > 0 && !m.digestMatches(data, b[head+n:whole]))
		m.rx.ahead = m.rx.ahead && n >= rxAhead
		return b[whole:], true
	}
	if n < placeFrom {
		return b, false
	}
	m.startPlacing(bhs, ahs, b[head:], n, whole-head-n)
	return b[min(head+n, len(b)):], true
}

// startPlacing sends the data segment to its place. A segment without a place,
// because its command is gone or there is no memory for it, is gathered once and
// dropped.
func (m *mover) startPlacing(bhs *pdu.BHS, ahs, have []byte, n, tail int) {
	place := m.r.Place(bhs, n)
	if place == nil {
		place = make([]byte, n)
	}
	rx := &m.rx
	rx.placing, rx.bhs, rx.place, rx.tailWant = true, *bhs, place, tail
	rx.ahs = append(rx.ahs[:0], ahs...)
	rx.got = copy(place, have)
	rx.ahead = true
}

// Revoke implements Datamover.
func (m *mover) Revoke() {
	if m.rx.placing {
		m.rx.place = append([]byte(nil), m.rx.place...)
	}
}

// parseTail delivers the placed PDU once its data, padding and digest are
// there.
func (m *mover) parseTail(b []byte) (rest []byte, done bool) {
	rx := &m.rx
	if rx.got < len(rx.place) || len(b) < rx.tailWant {
		return b, false
	}
	rx.placing = false
	bad := m.dataDigest && !m.digestMatches(rx.place, b[:rx.tailWant])
	place := rx.place
	rx.place = nil
	m.r.Received(&rx.bhs, rx.ahs, place, bad)
	return b[rx.tailWant:], true
}

// digestMatches checks the data digest that ends tail, behind the padding.
func (m *mover) digestMatches(data, tail []byte) bool {
	padding := len(tail) - pdu.DigestLength
	return pdu.ReadDigest(tail[padding:]) == pdu.DataDigest(data, tail[:padding])
}
