package targettest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
)

const (
	// maxQueued is how many PDUs may wait for an initiator that does not read
	// before nothing more is received from it.
	maxQueued = 64
	// pieceSize is how much is received at once, unless Wire says less.
	pieceSize = 64 << 10
	// drainTime bounds how long Close waits for the initiator to read.
	drainTime = 5 * time.Second
)

var errPeerClosed = errors.New("the initiator closed the connection")

// mover implements target.Datamover. All but link belongs to the event thread.
type mover struct {
	conn *Conn
	link link
	loop *evloop.Loop
	r    target.Receiver

	maxRecv, maxDataIn int

	piece   []byte
	in      []byte // received bytes of a PDU that is not complete
	placing bool   // asked already where its data belongs
	place   []byte // there, or nil
	waits   bool   // in is not taken until Resume
	placed  int    // bytes of the data segment that are in place
	moved   bool   // was attached before

	out      []outgoing
	cut      []byte // what is left of a PDU that went out in part
	backlog  int
	flushing bool // flush is queued for the end of the pass

	why    error
	drain  evloop.Timer
	closed bool
}

// outgoing is a PDU that waits for room in the pipe.
type outgoing struct {
	bhs  pdu.BHS
	data []byte
	ref  *buf.Ref

	again bool // it was stamped before
}

func newMover(c *Conn, w Wire, p *login.ConnectionParams) *mover {
	m := &mover{
		conn: c, piece: make([]byte, pieceSize),
		maxRecv:   int(p.TargetMaxRecvDataSegmentLength),
		maxDataIn: int(p.InitiatorMaxRecvDataSegmentLength),
	}
	if w.Piece > 0 {
		m.piece = m.piece[:min(w.Piece, pieceSize)]
	}
	m.drain.Fire = m.end
	return m
}

// link posts to the event thread that the mover is attached to.
type link struct {
	sync.Mutex
	loop *evloop.Loop
	due  bool
}

// wake is the pipes' notification.
func (m *mover) wake() {
	m.link.Lock()
	defer m.link.Unlock()
	if loop := m.link.loop; loop != nil && !m.link.due {
		m.link.due = true
		loop.Post(evloop.Func(func() { m.work(loop) }))
	}
}

// woken reports whether the mover still belongs to the loop on which it runs.
func (m *mover) woken(loop *evloop.Loop) bool {
	m.link.Lock()
	defer m.link.Unlock()
	if m.link.loop != loop {
		return false
	}
	m.link.due = false
	return true
}

// work does what the initiator's side made possible.
func (m *mover) work(loop *evloop.Loop) {
	if !m.woken(loop) || m.closed {
		return
	}
	defer m.r.Contain()
	m.scheduleFlush()
	m.receive()
}

// Attach implements target.Datamover.
func (m *mover) Attach(r target.Receiver, loop *evloop.Loop) error {
	m.r, m.loop = r, loop
	m.link.Lock()
	first := m.link.loop == nil && !m.moved
	m.link.loop, m.link.due, m.moved = loop, false, true
	m.link.Unlock()
	if first {
		m.conn.attached <- m
	}
	m.conn.toTarget.hear(m.wake)
	m.conn.toInitiator.hear(m.wake)
	return nil
}

// Detach implements target.Datamover.
func (m *mover) Detach() bool {
	if m.closed || m.why != nil || m.pending() || len(m.in) > 0 || m.placing {
		return false
	}
	m.link.Lock()
	m.link.loop = nil
	m.link.Unlock()
	return true
}

// quiet is how many passes in a row without work show that none is to come.
const quiet = 4

// settle closes done once the mover has been idle for some passes.
func (m *mover) settle(loop *evloop.Loop, idle int, done chan struct{}) {
	receiving := m.why == nil && len(m.out) < maxQueued && m.conn.toTarget.waiting()
	if m.flushing || !m.closed && receiving {
		idle = 0
	}
	if idle == quiet {
		close(done)
		return
	}
	loop.Post(evloop.Func(func() { m.settle(loop, idle+1, done) }))
}

// Resume implements target.Datamover.
func (m *mover) Resume() {
	if m.closed {
		return
	}
	defer m.r.Contain()
	m.waits = false
	m.parse(nil)
	m.wake()
}

// receive takes one piece: what is left waits for the next pass.
func (m *mover) receive() {
	if m.closed || m.why != nil || m.waits || len(m.out) >= maxQueued {
		return
	}
	n, ended := m.conn.toTarget.tryRead(m.piece)
	if n > 0 {
		m.r.Heard()
		m.parse(m.piece[:n])
		m.wake()
	} else if ended {
		m.Close(errPeerClosed, false)
	}
}

// parse delivers the PDUs that b completes.
func (m *mover) parse(b []byte) {
	m.in = append(m.in, b...)
	for !m.closed && m.why == nil && len(m.in) >= pdu.BHSLength {
		bhs := *(*pdu.BHS)(m.in)
		if n := bhs.DataSegmentLength(); n > m.maxRecv {
			m.Close(fmt.Errorf("data segment of %d bytes, MaxRecvDataSegmentLength is %d", n, m.maxRecv), false)
			return
		}
		if m.waits = !m.placing && m.r.Spent(&bhs); m.waits || !m.parsePDU(&bhs) {
			return
		}
	}
}

// parsePDU delivers the PDU at the start of in, or places what is there of its
// data segment. Placed bytes stay in in, too.
func (m *mover) parsePDU(bhs *pdu.BHS) (whole bool) {
	n, length := bhs.DataSegmentLength(), bhs.WireLength(false, false)
	head := pdu.BHSLength + bhs.TotalAHSLength()
	if len(m.in) < head {
		return false
	}
	data := m.in[head:min(head+n, len(m.in))]
	if len(m.in) < length && !m.placing && n > 0 {
		m.placing, m.place, m.placed = true, m.r.Place(bhs, n), 0
	}
	if m.place != nil {
		m.placed += copy(m.place[m.placed:], data[m.placed:])
		data = m.place[:m.placed]
	}
	if len(m.in) < length {
		return false
	}
	ahs := append([]byte(nil), m.in[pdu.BHSLength:head]...)
	if m.place == nil {
		data = append([]byte(nil), data...)
	}
	m.in = m.in[:copy(m.in, m.in[length:])]
	m.placing, m.place = false, nil
	m.r.Received(bhs, ahs, data, false)
	return true
}

// Revoke implements target.Datamover.
func (m *mover) Revoke() {
	if m.place != nil {
		m.place = append([]byte(nil), m.place...)
	}
}

// SendControl implements target.Datamover.
func (m *mover) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) { m.send(bhs, data, ref) }

// PutData implements target.Datamover.
func (m *mover) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) { m.send(bhs.BHS(), data, ref) }

// GetData implements target.Datamover.
func (m *mover) GetData(bhs *pdu.R2T) { m.send(bhs.BHS(), nil, nil) }

// Resend implements target.Resender.
func (m *mover) Resend(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	m.send(bhs, data, ref)
	if !m.closed {
		m.out[len(m.out)-1].again = true
	}
}

// MaxDataIn implements target.Datamover.
func (m *mover) MaxDataIn() int { return m.maxDataIn }

// SetMaxDataIn follows a new declaration of the initiator.
func (m *mover) SetMaxDataIn(n int) { m.maxDataIn = n }

func (m *mover) send(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	o := outgoing{bhs: *bhs, data: data, ref: ref}
	if m.closed {
		o.release()
		return
	}
	m.out = append(m.out, o)
	m.backlog += len(data)
	m.scheduleFlush()
}

func (o *outgoing) release() {
	if o.ref != nil {
		o.ref.Release()
	}
}

func (m *mover) scheduleFlush() {
	if !m.flushing {
		m.flushing = true
		m.loop.AtPassEnd(evloop.Func(m.flush))
	}
}

func (m *mover) pending() bool { return len(m.out) > 0 || len(m.cut) > 0 }

// flush moves to the pipe what it has room for.
func (m *mover) flush() {
	m.flushing = false
	if m.closed {
		return
	}
	defer m.r.Contain()
	full, left := len(m.out) >= maxQueued, false
	for m.put() && len(m.out) > 0 {
		m.next()
		left = true
	}
	if m.why != nil {
		if !m.pending() {
			m.end()
		}
		return
	}
	if left {
		m.r.Drained()
	}
	if full && len(m.out) < maxQueued {
		m.wake() // to receive again
	}
}

// put writes the rest of the PDU under way and reports whether it is all out.
func (m *mover) put() bool {
	m.cut = m.cut[m.conn.toInitiator.tryWrite(m.cut):]
	return len(m.cut) == 0
}

// next stamps the oldest PDU, which leaves now.
func (m *mover) next() {
	o := m.out[0]
	m.out = m.out[1:]
	if o.again {
		m.r.Restamp(&o.bhs)
	} else {
		m.r.Stamp(&o.bhs)
	}
	m.cut = append(append([]byte(nil), o.bhs[:]...), o.data...)
	m.cut = append(m.cut, make([]byte, pdu.Padding(len(o.data)))...)
	m.backlog -= len(o.data)
	o.release()
}

// Close implements target.Datamover.
func (m *mover) Close(why error, drain bool) {
	if m.closed {
		return
	}
	if m.why == nil {
		m.why = why
	}
	if !drain || m.r == nil || !m.pending() {
		m.end()
		return
	}
	m.loop.Arm(&m.drain, drainTime)
}

// end breaks the connection off and tells the receiver.
func (m *mover) end() {
	if m.closed {
		return
	}
	m.closed = true
	m.link.Lock()
	m.link.loop = nil
	m.link.Unlock()
	m.conn.Close()
	for i := range m.out {
		m.out[i].release()
	}
	m.out, m.cut, m.place, m.backlog = nil, nil, nil, 0
	if m.r != nil {
		m.loop.Disarm(&m.drain)
		m.r.Closed(m.why)
	}
}
