package iser

import (
	"fmt"

	"lunar/internal/buf"
	"lunar/iser/verbs"
	"lunar/target/pdu"
)

// MaxControl implements target.Assistant.
func (c *conn) MaxControl() int { return c.tx.longest }

// SendControl implements target.Datamover.
func (c *conn) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	if c.ending {
		releaseRef(ref)
		return
	}
	if c.r != nil && len(data) > c.tx.longest {
		panic(fmt.Sprintf("iser: %s with %d bytes of data, the initiator takes %d", bhs.Opcode(), len(data), c.tx.longest))
	}
	o := c.tx.out.push()
	*o = outgoing{kind: kindSend, bhs: *bhs, data: data, ref: ref}
	if bhs.Opcode() == pdu.OpSCSIResponse {
		c.respond(o, bhs.ITT())
	}
	c.schedule()
}

// respond ends the use of a task's buffers: the initiator may have the device
// invalidate the key of one with the response (RFC 7145 section 7.3.2).
func (c *conn) respond(o *outgoing, itt uint32) {
	t := c.tags.find(itt)
	if t == nil {
		return
	}
	if c.mayInvalidate {
		used := t.read
		if !used.ok {
			used = t.write
		}
		o.inv, o.hasInv = used.stag, used.ok
	}
	c.tags.remove(itt)
}

// Deallocate implements target.Assistant.
func (c *conn) Deallocate(itt uint32) { c.tags.remove(itt) }

// PutData implements target.Datamover: an RDMA Write to the task's read buffer.
func (c *conn) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	t := c.tags.find(bhs.BHS().ITT())
	switch {
	case c.ending || len(data) == 0:
		releaseRef(ref)
		return
	case t == nil || !t.read.ok:
		releaseRef(ref)
		c.Close(fmt.Errorf("%w: command %#x reads, but names no buffer (Read STag)", errProtocol, bhs.BHS().ITT()), false)
		return
	}
	o := c.tx.out.push()
	*o = outgoing{kind: kindWrite, write: t.read, data: data, ref: ref}
	o.write.base += uint64(bhs.BufferOffset())
	c.schedule()
}

// GetData implements target.Datamover; Fetch is used in its place.
func (c *conn) GetData(*pdu.R2T) { panic("iser: GetData: expected Fetch") }

// Fetch implements target.Assistant: an RDMA Read from the task's write buffer,
// which begins behind what came with the command.
func (c *conn) Fetch(bhs *pdu.R2T, dst []byte) {
	if c.ending {
		return
	}
	t := c.tags.find(bhs.BHS().ITT())
	if t == nil || !t.write.ok || bhs.BufferOffset() < t.unsolicited {
		c.Close(fmt.Errorf("%w: command %#x writes %d bytes at %d, but names no buffer for them (Write STag)",
			errProtocol, bhs.BHS().ITT(), len(dst), bhs.BufferOffset()), false)
		return
	}
	f := c.tx.fetch.push()
	*f = fetch{from: t.write, dst: dst, itt: bhs.BHS().ITT(), ttt: bhs.BHS().TTT()}
	f.from.base += uint64(bhs.BufferOffset() - t.unsolicited)
	c.schedule()
}

// schedule makes the queued leave at the end of the pass.
func (c *conn) schedule() {
	if !c.tx.scheduled {
		c.tx.scheduled = true
		c.loop.AtPassEnd(c.tx.flush)
	}
}

// flushAtEnd is the pass-end task: receives first, so that the initiator finds one
// for what it sends upon a response.
func (c *conn) flushAtEnd() {
	c.tx.scheduled = false
	if c.ending {
		return
	}
	if c.r != nil {
		defer c.r.Contain()
	}
	err := c.repost()
	if err == nil {
		err = c.post()
	}
	switch {
	case err != nil:
		c.lost(err)
	case c.draining && !c.tx.pending():
		c.end()
	case c.r != nil:
		c.r.Drained()
	}
}

// post gives the device what is queued, as far as there is room, in as few lists
// as possible.
func (c *conn) post() error {
	tx, s := &c.tx, c.group
	for {
		before, n := tx.work.tail, 0
		for n < workMost && c.next(&s.wrs[n], &s.sges[n]) {
			tx.signal(&s.wrs[n], int(s.sges[n].Len), false)
			n++
		}
		if n == 0 {
			return nil
		}
		tx.signal(&s.wrs[n-1], 0, tx.quiet.bytes > 0 || c.draining)
		s.count.posts.Add(1)
		if posted, err := c.qp.PostSend(s.wrs[:n], s.sges[:n]); err != nil {
			c.unpost(before + uint32(posted))
			return fmt.Errorf("post %d entries to the send queue: %w", n, err)
		}
	}
}

// unpost gives up the work from a position on that the device did not take.
func (c *conn) unpost(from uint32) {
	for c.tx.work.tail != from {
		w := c.tx.work.unpush()
		c.forget(w)
	}
}

// next makes the next entry; false: there is none, or no room.
func (c *conn) next(wr *verbs.WR, sge *verbs.SGE) bool {
	tx := &c.tx
	if tx.work.len() >= tx.most {
		return false
	}
	if tx.out.len() > 0 && c.admits(tx.out.first().kind) && c.nextOut(tx.out.first(), wr, sge) {
		*tx.out.pop() = outgoing{}
		return true
	}
	if tx.fetch.len() > 0 && tx.reads < c.depth && c.admits(kindRead) {
		return c.nextRead(tx.fetch.pop(), wr, sge)
	}
	return false
}

// admits reports whether the governor, if there is one, lets something of a kind leave now.
func (c *conn) admits(k kind) bool { return c.gov == nil || c.gov.admits(k) }

// nextOut makes an entry of a write or a PDU.
func (c *conn) nextOut(o *outgoing, wr *verbs.WR, sge *verbs.SGE) bool {
	if o.kind == kindSend {
		return c.nextSend(o, wr, sge)
	}
	from, ok := c.group.device.memory.sge(o.data)
	if !ok {
		if !c.bounce(o) {
			return false
		}
		from, _ = c.group.device.memory.sge(o.data)
	}
	*sge = from
	*wr = verbs.WR{ID: c.sendID(c.tx.work.tail), RAddr: o.write.base, RKey: o.write.stag, Op: verbs.OpWrite, NSGE: 1}
	*c.tx.work.push() = work{kind: kindWrite, ref: o.ref, bytes: len(o.data)}
	c.group.count.writes.Add(1)
	c.group.count.written.Add(uint64(len(o.data)))
	if c.gov != nil {
		c.gov.posted(kindWrite, len(o.data))
	}
	return true
}

// bounce copies what does not lie in registered memory, such as parameter data, to
// a buffer of the pool; without one it is tried again later.
func (c *conn) bounce(o *outgoing) bool {
	own := c.loop.Pool().Get(len(o.data))
	if own == nil {
		if !c.timer.Armed() {
			c.loop.Arm(&c.timer, bounceTime)
		}
		return false
	}
	if o.ref != nil {
		own.ChargeAs(o.ref)
	}
	buf.Copy(own.Bytes(), o.data)
	c.group.count.bounced.Add(uint64(len(o.data)))
	releaseRef(o.ref)
	o.data, o.ref = own.Bytes(), own
	return true
}

// nextSend makes an entry of a PDU, in a slot of its own.
func (c *conn) nextSend(o *outgoing, wr *verbs.WR, sge *verbs.SGE) bool {
	tx := &c.tx
	from := &tx.large
	if len(tx.small.mem) > 0 && messageHead+len(o.data) <= controlSlot {
		from = &tx.small
	}
	slot := from.take()
	if slot == nil {
		return false
	}
	if c.r != nil {
		c.r.Stamp(&o.bhs)
	}
	clear(slot[:headerLength])
	slot[0] = typeControl
	copy(slot[headerLength:], o.bhs[:])
	n := messageHead + copy(slot[messageHead:], o.data)
	*sge = verbs.SGE{Addr: verbs.Addr(slot), Len: uint32(n), LKey: from.lkey}
	*wr = verbs.WR{ID: c.sendID(tx.work.tail), Op: verbs.OpSend, NSGE: 1}
	if from != &tx.small || o.bhs.Opcode() != pdu.OpSCSIResponse {
		wr.Flags = verbs.FlagSignaled
	}
	if n <= tx.inline {
		wr.Flags |= verbs.FlagInline
	}
	if o.hasInv {
		wr.Op, wr.RKey = verbs.OpSendInv, o.inv
		c.group.count.invalidates.Add(1)
	}
	if o.bhs.Opcode() == pdu.OpLogoutResponse { // after it the initiator's memory is its own
		wr.Flags |= verbs.FlagFence
	}
	releaseRef(o.ref) // its data have been copied
	*tx.work.push() = work{kind: kindSend, slots: from, bytes: n}
	c.group.count.sends.Add(1)
	return true
}

// nextRead makes an entry of an RDMA Read.
func (c *conn) nextRead(f *fetch, wr *verbs.WR, sge *verbs.SGE) bool {
	into, ok := c.group.device.memory.sge(f.dst)
	if !ok {
		panic("iser: the place of a fetch does not lie in registered memory")
	}
	*sge = into
	*wr = verbs.WR{ID: c.sendID(c.tx.work.tail), RAddr: f.from.base, RKey: f.from.stag, Op: verbs.OpRead, Flags: verbs.FlagSignaled, NSGE: 1}
	*c.tx.work.push() = work{kind: kindRead, itt: f.itt, ttt: f.ttt, bytes: len(f.dst)}
	c.tx.reads++
	c.group.count.reads.Add(1)
	c.group.count.read.Add(uint64(len(f.dst)))
	if c.gov != nil {
		c.gov.posted(kindRead, len(f.dst))
	}
	*f = fetch{}
	return true
}

// sent takes the successful completion of the entry at a position, and with it
// that of all before it.
func (c *conn) sent(at uint32) {
	c.retire(at, true)
	if c.tx.out.len() > 0 || c.tx.fetch.len() > 0 || c.draining {
		c.schedule()
	}
}

// retire takes entries off the send queue up to a position. done says that the one
// at the position has succeeded; the others before it, all unsignaled, then
// have as well.
func (c *conn) retire(at uint32, done bool) {
	for c.tx.work.len() > 0 && int32(at-c.tx.work.head) >= 0 {
		w := *c.tx.work.pop()
		c.tx.done += uint64(w.bytes)
		if c.gov != nil {
			c.gov.ended(c.tx.work.head-1, w.kind)
		}
		c.forget(&w)
		if w.kind == kindRead && done {
			c.r.Fetched(w.itt, w.ttt)
		}
	}
	c.endIfFlushed()
}

// forget gives up what an entry held.
func (c *conn) forget(w *work) {
	switch w.kind {
	case kindSend:
		w.slots.busy--
	case kindRead:
		c.tx.reads--
	}
	if w.signaled {
		c.tx.told--
	}
	releaseRef(w.ref)
	w.ref = nil
}

// retireAll forgets all entries of a queue pair that is gone.
func (c *conn) retireAll() {
	for c.tx.work.len() > 0 {
		c.forget(c.tx.work.pop())
	}
}
