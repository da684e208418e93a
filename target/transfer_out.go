package target

import (
	"lunar/internal/buf"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Alloc implements scsi.Port. Whoever has to wait is served in order of
// arrival by thread.feed.
func (t *task) Alloc(cmd *scsi.Command, n int) *buf.Ref {
	if ref := t.early; ref != nil && cmd.Landing() && n == len(ref.Bytes()) {
		t.early = nil
		return ref
	}
	if t.stray {
		return nil // it is not refused after all: Connection.run ends it
	}
	ref := t.conn.get(n)
	if ref == nil {
		t.conn.wait(t)
	}
	return ref
}

// Affords implements scsi.Port. It comes before anything is lent: a loan that was
// given back at once would call for those who wait, and they for the next loan.
func (t *task) Affords(_ *scsi.Command, n int) bool { return t.conn.mayTake(n) }

// Charge implements scsi.Port.
func (t *task) Charge(_ *scsi.Command, ref *buf.Ref) { ref.Charge(&t.conn.charged) }

// ReceiveDataOut implements scsi.Port: data that came unasked is there
// already, the rest is asked for by R2Ts (RFC 7143 section 11.8).
func (t *task) ReceiveDataOut(cmd *scsi.Command, off uint32, dst []byte) {
	if t.conn.closed && !t.conn.lost || t.dying {
		return // the teardown, or the end of what is being fetched, ends the command
	}
	w := &t.wants[t.wanted]
	t.wanted++
	*w = want{off: off, dst: dst, claimed: t.conn.claim()}
	w.got = t.takeEarly(w)
	if w.got == len(dst) {
		t.satisfied(t.wanted - 1)
		return
	}
	t.solicit()
}

// takeEarly moves what came unasked to w and returns how many bytes it was.
func (t *task) takeEarly(w *want) int {
	have := min(t.unsolicited.next, w.end())
	if have <= w.off {
		return 0
	}
	t.taken = have
	if src := t.unasked(); src != nil { // else Alloc has handed the very same memory to the command
		move(w.dst, src[w.off:have])
	}
	return int(have - w.off)
}

// unasked is where the data lies that came unasked.
func (t *task) unasked() []byte {
	switch {
	case t.early != nil:
		return t.early.Bytes()
	case t.cmd.Immediate != nil:
		return t.cmd.Immediate
	}
	return t.stash
}

// satisfied takes want i off the list and tells the command.
func (t *task) satisfied(i int) {
	w := t.wants[i]
	copy(t.wants[i:t.wanted], t.wants[i+1:t.wanted])
	t.wanted--
	t.wants[t.wanted] = want{}
	c, outer := t.conn, t.conn.calling
	c.calling = t
	t.cmd.DataOut(w.off, uint32(len(w.dst)))
	c.calling = outer
}

// solicit sends R2Ts for what is wanted, in ascending order, as many as
// MaxOutstandingR2T allows, none longer than MaxBurstLength, and none before
// the unsolicited data has ended (DataSequenceInOrder).
func (t *task) solicit() {
	c := t.conn
	limit := min(int(c.session.params.MaxOutstandingR2T), maxOutstandingR2T)
	for !t.unsolicited.open && t.r2tCount < limit {
		t.r2tNext = max(t.r2tNext, t.unsolicited.next)
		w := t.wantAt(t.r2tNext)
		if w == nil {
			return
		}
		n := min(w.end()-t.r2tNext, uint32(c.session.params.MaxBurstLength))
		t.sendR2T(t.r2tNext, w.dst[t.r2tNext-w.off:][:n])
		t.r2tNext += n
	}
}

// sendR2T asks for the data at off that belongs to dst.
func (t *task) sendR2T(off uint32, dst []byte) {
	c, n := t.conn, uint32(len(dst))
	ttt := c.newTTT()
	t.r2ts[t.r2tCount] = sequence{open: true, ttt: ttt, next: off, end: off + n}
	t.r2tCount++
	t.moved = c.thread.loop.Now()
	p := (*pdu.R2T)(&c.header).Init()
	p.BHS().SetLUN(t.lunField)
	p.BHS().SetITT(t.itt)
	p.BHS().SetTTT(ttt)
	p.SetR2TSN(t.dataSN)
	t.dataSN++
	p.SetBufferOffset(off)
	p.SetDesiredDataTransferLength(n)
	if c.assist != nil {
		c.assist.Fetch(p, dst)
		return
	}
	c.mover.GetData(p)
}

// wantAt returns the want that covers the buffer offset, or nil.
func (t *task) wantAt(off uint32) *want {
	if i := t.wantIndex(off); i >= 0 {
		return &t.wants[i]
	}
	return nil
}

// sequenceOf returns the sequence that a Data-Out PDU belongs to, or nil.
func (t *task) sequenceOf(ttt uint32) *sequence {
	if ttt == pdu.ReservedTag {
		if t.unsolicited.open {
			return &t.unsolicited
		}
		return nil
	}
	for i := range t.r2tCount {
		if t.r2ts[i].ttt == ttt {
			return &t.r2ts[i]
		}
	}
	return nil
}

// placeDataOut says where n bytes at off belong: nil when they do not lie in
// one place.
func (t *task) placeDataOut(off uint32, n int) []byte {
	if w := t.wantAt(off); w != nil {
		if int(w.end()-off) < n {
			return nil
		}
		return w.dst[off-w.off:][:n]
	}
	if t.early != nil && int(off)+n <= cap(t.early.Bytes()) {
		b := t.early.Bytes()
		return b[:cap(b)][off:][:n]
	}
	return nil
}

// receiveDataOut takes one Data-Out PDU of the task. data may already lie in
// its place; bad says that its digest was wrong. fault names what is wrong with the PDU.
func (t *task) receiveDataOut(p *pdu.DataOut, data []byte, bad bool) (fault *scsi.Sense) {
	s := t.sequenceOf(p.BHS().TTT())
	if s == nil {
		return scsi.UnexpectedUnsolicitedData
	}
	if bad || s.broken {
		return t.miss(s, p.BHS().Final(), scsi.ProtocolServiceCRCError)
	}
	n, final := uint32(len(data)), p.BHS().Final()
	if p.DataSN() != s.dataSN || p.BufferOffset() != s.next || n > s.end-s.next {
		return t.miss(s, final, scsi.DataPhaseError)
	}
	if s != &t.unsolicited && final != (s.next+n == s.end) {
		return scsi.DataPhaseError
	}
	off := s.next
	s.dataSN++
	s.next += n
	t.moved = t.conn.thread.loop.Now()
	if final || s.next == s.end {
		t.closeSequence(s)
	}
	t.store(off, data)
	return nil
}

// maxRecovery is how often data of a task is asked for again.
const maxRecovery = 16

// miss takes note that a PDU of the sequence has not come, or with a wrong digest. At
// ErrorRecoveryLevel 1 the rest of the sequence is dropped, and asked for again when it
// is over (recovery R2T, RFC 7143 section 7.8); else, or when it was asked for too
// often, fault ends the command.
func (t *task) miss(s *sequence, final bool, fault *scsi.Sense) *scsi.Sense {
	if t.conn.recall == nil || !s.broken && t.recovery >= maxRecovery {
		return fault
	}
	if !s.broken {
		s.broken = true
		t.recovery++
	}
	if !final {
		return nil
	}
	off, end, unsolicited := s.next, s.end, s == &t.unsolicited
	t.closeSequence(s)
	if !unsolicited { // else it is solicited like data that never came
		t.askAgain(off, end)
	}
	t.solicit()
	return nil
}

// askAgain sends an R2T for data that was asked for before.
func (t *task) askAgain(off, end uint32) {
	w := t.wantAt(off)
	if w == nil {
		return
	}
	t.sendR2T(off, w.dst[off-w.off:][:end-off])
}

// closeSequence ends a sequence; sequences of R2Ts leave the list.
func (t *task) closeSequence(s *sequence) {
	s.open = false
	if s == &t.unsolicited {
		return
	}
	for i := range t.r2tCount {
		if &t.r2ts[i] == s {
			t.r2tCount--
			t.r2ts[i] = t.r2ts[t.r2tCount]
			t.r2ts[t.r2tCount] = sequence{}
			return
		}
	}
}

// store puts data where the command wants it, or into the landing buffer when
// the command has not asked yet; what nobody wants (an initiator that sends
// more than the CDB says) is dropped.
func (t *task) store(off uint32, data []byte) {
	for len(data) > 0 {
		i := t.wantIndex(off)
		if i < 0 {
			t.land(off, data)
			break
		}
		w := &t.wants[i]
		n := min(len(data), int(w.end()-off))
		move(w.dst[off-w.off:][:n], data[:n])
		w.got += n
		off, data = off+uint32(n), data[n:]
		if w.got == len(w.dst) {
			ended := t.finishWant(i)
			if ended {
				return
			}
		}
	}
	t.solicit()
}

// wantIndex returns the place in wants of what covers the buffer offset, or -1.
func (t *task) wantIndex(off uint32) int {
	for i := range t.wanted {
		if w := &t.wants[i]; w.off <= off && off < w.end() {
			return i
		}
	}
	return -1
}

// finishWant tells the command, which may end by that: it then reports true
// and the task must not be touched.
func (t *task) finishWant(i int) (ended bool) {
	c, itt := t.conn, t.itt
	t.satisfied(i)
	return c.tasks.find(itt) != t
}

func (t *task) land(off uint32, data []byte) {
	b := t.stash
	if t.early != nil {
		b = t.early.Bytes()
		b = b[:cap(b)]
	}
	if int(off) < len(b) {
		move(b[off:], data)
	}
}

// move copies unless the data is there already.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		buf.Copy(dst, src)
	}
}
