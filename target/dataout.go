package target

import (
	"log/slog"

	"lunar/internal/buf"
	"lunar/target/pdu"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// ReceiveDataOut implements scsi.Port: data that came unasked is there
// already, the rest is asked for by R2Ts (RFC 7143 section 11.8).
func (t *task) ReceiveDataOut(cmd *scsi.Command, off uint32, dst []byte) {
	if t.conn.closed && !t.conn.lost || t.dying {
		return // the teardown, or the end of what is being fetched, ends the command
	}
	w := &t.wants[t.wanted]
	t.wanted++
	*w = want{off: off, dst: dst}
	w.got = t.takeLanded(w)
	if w.got == len(dst) {
		t.satisfied(t.wanted - 1)
		return
	}
	w.claimed = t.conn.claim()
	t.solicit()
}

// takeLanded moves what came unasked to w and returns how many bytes it was.
func (t *task) takeLanded(w *want) int {
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
	case t.landing != nil:
		return t.landing.Bytes()
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
		if c.pacing.network != nil {
			if n = uint32(c.pacing.admits(t, int(n))); n == 0 {
				return
			}
		}
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
	if c.pacing.network != nil {
		c.pacing.opened(t, &t.r2ts[t.r2tCount-1], t.moved)
	}
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
	if t.landing != nil && int(off)+n <= cap(t.landing.Bytes()) {
		b := t.landing.Bytes()
		return b[:cap(b)][off:][:n]
	}
	return nil
}

// receiveDataOut takes one Data-Out PDU of the task. data may already lie in
// its place; bad says that its digest was wrong. fault names what is wrong with the PDU.
func (t *task) receiveDataOut(p *pdu.DataOut, data []byte, bad bool) (fault *sense.Data) {
	s := t.sequenceOf(p.BHS().TTT())
	if s == nil {
		return sense.UnexpectedUnsolicitedData
	}
	if bad || s.broken {
		return t.miss(s, p.BHS().Final(), sense.ProtocolServiceCRCError)
	}
	n, final := uint32(len(data)), p.BHS().Final()
	if p.DataSN() != s.dataSN || p.BufferOffset() != s.next || n > s.end-s.next {
		return t.miss(s, final, sense.DataPhaseError)
	}
	if s != &t.unsolicited && final != (s.next+n == s.end) {
		return sense.DataPhaseError
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
func (t *task) miss(s *sequence, final bool, fault *sense.Data) *sense.Data {
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
	if t.asked > 0 {
		t.conn.pacing.closed(t, s, t.conn.thread.loop.Now())
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
	if t.landing != nil {
		b = t.landing.Bytes()
		b = b[:cap(b)]
	}
	if int(off) < len(b) {
		move(b[off:], data)
	}
}

// Place implements Receiver.
func (c *Connection) Place(bhs *pdu.BHS, n int) []byte {
	switch bhs.Opcode() {
	case pdu.OpSCSICommand:
		p := (*pdu.SCSICommand)(bhs)
		if !p.Write() {
			return nil
		}
		var cdb scsi.CDB
		copy(cdb[:], p.CDB()[:])
		size := c.findLUN(bhs.LUN()).landingSize(&cdb, p.ExpectedDataTransferLength())
		if n > size {
			return nil
		}
		c.releasePlaced()
		if c.placed = c.get(size); c.placed == nil {
			return nil
		}
		return c.placed.Bytes()[:n]
	case pdu.OpDataOut:
		if t := c.tasks.find(bhs.ITT()); t != nil && t.conn == c && !t.cmd.Aborted() {
			p := (*pdu.DataOut)(bhs)
			if s := t.sequenceOf(bhs.TTT()); s != nil && !s.broken && p.BufferOffset() == s.next && uint32(n) <= s.end-s.next {
				c.placing = t
				return t.placeDataOut(s.next, n)
			}
		}
	}
	return nil
}

// revokePlace keeps the transport from writing to the memory of a task that is to
// end.
func (c *Connection) revokePlace(t *task) {
	if c.placing == t {
		c.placing = nil
		c.mover.Revoke()
	}
}

// prepareDataOut says which data comes unasked, nothing after a final PDU, and where the
// part of it that is there lies.
func (c *Connection) prepareDataOut(t *task, final bool, r *request) bool {
	data, edtl := r.data, t.cmd.EDTL
	n := uint32(len(data))
	t.unsolicited = sequence{open: !final, ttt: pdu.ReservedTag, next: n, end: n}
	t.unsolicited.broken = r.badDigest
	if t.unsolicited.open {
		t.unsolicited.end = min(c.session.params.FirstBurstLength, edtl)
		t.claimed = c.claim()
	}
	placed := c.takePlaced()
	if n == edtl && n > 0 {
		if placed == nil && c.stashed+len(data) > maxStashed {
			return false
		}
		t.cmd.Immediate = data
		t.landing = placed
		return true
	}
	if edtl == 0 || n == 0 && !t.unsolicited.open {
		releaseRef(placed)
		return true
	}
	if placed == nil {
		size := t.lun.landingSize(&t.cmd.CDB, edtl)
		if size == 0 { // it is going to be refused
			t.stray = true
			return true
		}
		if placed = c.get(size); placed == nil {
			return false
		}
		buf.Copy(placed.Bytes(), data)
	}
	t.landing = placed
	return true
}

// landingSize returns the size of a buffer for the unasked data of a write of edtl bytes, 0
// if nobody is going to want them: the LUN does not exist or the command is refused. It
// is as large as the write's first segment, so that the command can go on with the very
// same memory.
func (l *lun) landingSize(cdb *scsi.CDB, edtl uint32) int {
	if l == nil {
		return 0
	}
	return min(int(scsi.Wants(l.nexus, cdb, edtl)), scsi.SegmentSize)
}

// unload takes the unasked data of a command that waits out of its buffer, and
// gives what follows a place. False says that the session keeps too much already.
func (t *task) unload() bool {
	landed := t.landing.Bytes()
	landed = landed[:min(cap(landed), int(t.unsolicited.end))]
	if t.conn.stashed+len(landed) > maxStashed {
		return false
	}
	t.stash = make([]byte, len(landed))
	t.conn.stashed += len(t.stash)
	buf.Copy(t.stash, landed[:min(len(landed), int(t.unsolicited.next))])
	t.cmd.Immediate = nil
	t.conn.revokePlace(t)
	t.landing.Release()
	t.landing = nil
	return true
}

// keepImmediate copies immediate data out of the receive buffer while the
// command, which waits for memory, has not asked for all of it.
func (t *task) keepImmediate() {
	if t.cmd.Immediate != nil && t.landing == nil && t.taken < uint32(len(t.cmd.Immediate)) {
		t.stash = make([]byte, len(t.cmd.Immediate))
		buf.Copy(t.stash, t.cmd.Immediate)
		t.conn.stashed += len(t.stash)
	}
	t.cmd.Immediate = nil
}

// takePlaced hands out the buffer that Place put immediate data into.
func (c *Connection) takePlaced() *buf.Ref {
	ref := c.placed
	c.placed = nil
	return ref
}

// releasePlaced releases it when its command is not taken.
func (c *Connection) releasePlaced() { releaseRef(c.takePlaced()) }

// dataOut takes a Data-Out PDU (RFC 7143 section 11.7). Data of a task that is
// not there any more, because it failed or was aborted, is dropped.
func (c *Connection) dataOut(r *request) {
	t := c.tasks.find(r.bhs.ITT())
	if t == nil {
		c.keepEarlyData(r)
		return
	}
	if t.conn != c {
		c.violation("Data-Out for task %#x of the connection with CID %d, expected only tasks of CID %d", t.itt, t.conn.cid, c.cid)
		return
	}
	p := (*pdu.DataOut)(r.bhs)
	if r.badDigest {
		c.reject(r, pdu.RejectDataDigestError)
	}
	if t.cmd.Aborted() || t.dying {
		return
	}
	if t.fetching() {
		c.violation("Data-Out for task %#x, whose data is fetched, expected none", t.itt)
		return
	}
	if fault := t.receiveDataOut(p, r.data, r.badDigest); fault != nil {
		c.rare.Log(c.log, slog.LevelWarn, "Data-Out out of sequence", "itt", t.itt, "offset", p.BufferOffset(), "length", len(r.data),
			"datasn", uint32(p.DataSN()), "sense", fault)
		t.fail(fault)
	}
}

// fail ends the task's command with sense, when what runs for it has ended.
func (t *task) fail(s *sense.Data) {
	t.conn.waiters.remove(t)
	t.wanted, t.r2tCount = 0, 0
	t.unsolicited.open = false
	t.cmd.FailTransfer(s)
}
