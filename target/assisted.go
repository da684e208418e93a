package target

import (
	"lunar/internal/buf"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Fetched implements Receiver: the data of an R2T are where they belong.
func (c *Connection) Fetched(itt, ttt uint32) {
	t := c.tasks.find(itt)
	if c.closed || t == nil {
		return
	}
	s := t.sequenceOf(ttt)
	if s == nil {
		return
	}
	off, n := s.next, s.end-s.next
	t.closeSequence(s)
	t.moved = c.thread.loop.Now()
	if !t.dying {
		t.arrived(off, n)
	} else if t.r2tCount == 0 {
		c.abort(t)
	}
}

// fetching reports whether the transport is writing to memory of the task by
// itself: an RDMA Read cannot be called back, and the initiator must not be
// told of the task's end while one is under way (RFC 7145 section 7.3.5: its
// buffer is another's by then).
func (t *task) fetching() bool { return t.conn.assist != nil && t.r2tCount > 0 && !t.conn.closed }

// arrived counts n bytes at off that lie in the place of one want.
func (t *task) arrived(off, n uint32) {
	i := t.wantIndex(off)
	if i < 0 {
		return
	}
	w := &t.wants[i]
	w.got += int(n)
	if w.got == len(w.dst) && t.finishWant(i) {
		return
	}
	t.solicit()
}

// putAssisted is SendDataIn in iSER-assisted mode: all at once, and the status in
// a PDU of its own (RFC 7145 section 7.3.4).
func (t *task) putAssisted(cmd *scsi.Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	c := t.conn
	p := (*pdu.DataIn)(&c.header).Encode(&pdu.DataInFields{ITT: t.itt, DataSN: t.dataSN, Offset: off, Length: len(data), Final: true})
	t.dataSN++
	t.sent = off + uint32(len(data))
	c.mover.PutData(p, data, ref)
	if last {
		t.respond(cmd)
	}
}

// maxControl is the longest data segment of a PDU that is no Data-In.
func (c *Connection) maxControl() int {
	if c.assist != nil {
		return c.assist.MaxControl()
	}
	return c.mover.MaxDataIn()
}
