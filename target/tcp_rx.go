package target

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target/pdu"
)

const (
	// rxScratch is the room of a thread's receive scratch beyond the longest
	// data segment: bytes read at once, for all connections of the thread in
	// turn, so that it stays in the CPU's cache.
	rxScratch = 256 << 10
	// placeFrom is the data segment length from which the rest of a segment
	// is read to where it belongs rather than into the scratch.
	placeFrom = 16 << 10
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

// rxState is where the receiver stands in the byte stream.
type rxState struct {
	again evloop.Task
	due   bool   // again is queued
	ahead bool   // large data segments are coming
	kept  []byte // bytes of PDUs that have not arrived completely or are not taken yet
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

func (rx *rxState) busy() bool { return rx.placing || len(rx.kept) > 0 }

func (rx *rxState) drop() { rx.kept, rx.place, rx.ahs = nil, nil, nil }

// receive reads what is there, a bounded number of times, and acts on every
// complete PDU.
func (m *tcpMover) receive() {
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
	}
	m.receiveLater()
}

// Resume implements Datamover.
func (m *tcpMover) Resume() {
	if !m.closed {
		defer m.r.Contain()
		m.receive()
	}
}

// catchUp delivers what earlier reads have left, and reports whether all of it was
// taken.
func (m *tcpMover) catchUp() bool {
	rx := &m.rx
	if !rx.late {
		return true
	}
	rx.late = false
	if rest := m.parse(rx.kept[rx.taken:]); !m.closed {
		rx.taken = len(rx.kept) - len(rest)
	}
	if rx.late || m.closed || m.why != nil {
		return false
	}
	m.keep(rx.kept[rx.taken:])
	return true
}

// stalled reports whether the peer has to take what it is owed before anything
// is taken from it. The flush that brings room receives again.
func (m *tcpMover) stalled() bool {
	m.rx.stalled = m.tx.full()
	return m.rx.stalled
}

func (m *tcpMover) receiveLater() {
	if !m.rx.due && !m.closed {
		m.rx.due = true
		m.loop.Again(m.rx.again)
	}
}

func (m *tcpMover) receiveAgain() {
	m.rx.due = false
	if m.closed {
		return
	}
	defer m.r.Contain()
	m.receive()
}

func (m *tcpMover) endOfStream() error {
	if m.rx.busy() {
		return fmt.Errorf("%w in the middle of a PDU: %w", errPeerClosed, io.ErrUnexpectedEOF)
	}
	return errPeerClosed
}

// read does one system call and parses what it brought. want is what it could
// have brought.
func (m *tcpMover) read() (n, want int, errno unix.Errno) {
	scratch := m.room.receive
	kept := copy(scratch, m.rx.kept)
	room := scratch[kept:]
	room = room[:min(len(room), m.rx.reach)]
	if m.rx.ahead && len(room) > rxAhead {
		room = room[:rxAhead]
	}
	placed, want := 0, len(room)
	if m.rx.placing && m.rx.got < len(m.rx.place) {
		rest := m.rx.place[m.rx.got:]
		iov := &m.room.readv
		iov[0].Base, iov[1].Base = &rest[0], &room[0]
		iov[0].SetLen(len(rest))
		iov[1].SetLen(len(room))
		want += len(rest)
		n, errno = evloop.Readv(m.fd, iov[:])
		placed = min(n, len(rest))
	} else {
		n, errno = evloop.Read(m.fd, room)
	}
	if errno != 0 || n == 0 {
		return n, want, errno
	}
	m.rx.got += placed
	m.rx.total += uint64(n)
	m.r.Heard()
	m.keep(m.parse(scratch[:kept+n-placed]))
	m.follow(n == want)
	return n, want, errno
}

// follow reads more at once from who sends much that is quickly done, and little
// from who has to wait for his turn.
func (m *tcpMover) follow(more bool) {
	switch {
	case m.rx.late:
		m.rx.reach = readLeast
	case more:
		m.rx.reach = min(2*m.rx.reach, len(m.room.receive))
	}
}

// keep keeps what of the bytes was not taken, in place of what was kept before.
func (m *tcpMover) keep(b []byte) {
	if m.closed {
		return
	}
	m.rx.taken = 0
	if len(b) == 0 && cap(m.rx.kept) > 4*readLeast { // more than PDUs in pieces need
		m.rx.kept = nil
		return
	}
	m.rx.kept = append(m.rx.kept[:0], b...)
}

// parse delivers the complete PDUs in b and returns what remains: the start of
// a PDU whose data segment has no place yet.
func (m *tcpMover) parse(b []byte) []byte {
	for !m.closed && m.why == nil {
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

var errHeaderDigest = errors.New("header digest error")

// parsePDU delivers the PDU at the start of b. done is false when more bytes
// are needed.
func (m *tcpMover) parsePDU(b []byte) (rest []byte, done bool) {
	bhs := (*pdu.BHS)(b)
	ahsLength, n := bhs.TotalAHSLength(), bhs.DataSegmentLength()
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
			m.Close(fmt.Errorf("%w: found %#x, expected %#x", errHeaderDigest, uint32(found), uint32(want)), false)
			return nil, false
		}
	}
	whole := m.wireLength(bhs)
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

// startPlacing sends the data segment to where it belongs. What belongs
// nowhere, because its command is gone or there is no memory for it, is
// gathered once and dropped.
func (m *tcpMover) startPlacing(bhs *pdu.BHS, ahs, have []byte, n, tail int) {
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

// Withdraw implements Datamover.
func (m *tcpMover) Withdraw() {
	if m.rx.placing {
		m.rx.place = append([]byte(nil), m.rx.place...)
	}
}

// parseTail delivers the placed PDU once its data, padding and digest are
// there.
func (m *tcpMover) parseTail(b []byte) (rest []byte, done bool) {
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
func (m *tcpMover) digestMatches(data, tail []byte) bool {
	padding := len(tail) - pdu.DigestLength
	return pdu.ReadDigest(tail[padding:]) == pdu.DataDigest(data, tail[:padding])
}
