package target

import (
	"log/slog"

	"lunar/internal/buf"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// scsiCommand takes a SCSI command (RFC 7143 section 11.3) from its PDU to the
// device server.
func (c *Connection) scsiCommand(r *request) {
	p := (*pdu.SCSICommand)(r.bhs)
	if fault := c.checkCommand(p, r); fault != 0 {
		c.dropPlaced()
		c.finish(r)
		c.reject(r, fault)
		return
	}
	t := c.thread.newTask(c)
	t.windowed = !r.bhs.Immediate()
	if !t.windowed {
		c.immediates++
	}
	if err := t.init(p, r.ahs); err != nil {
		c.violation("SCSI command %#x: %w", r.bhs.ITT(), err)
		t.end()
		return
	}
	c.tasks.insert(t)
	c.enter(t)
	c.execute(t, p, r)
	c.exit(t)
}

// enter begins the execution of a task's command, exit ends it: a task that ends
// meanwhile is recycled only then.
func (c *core) enter(t *task) { c.executing, c.calling = t, t }

func (c *core) exit(t *task) {
	c.executing, c.calling = nil, nil
	if t.ended {
		c.thread.recycle(t)
	}
}

// checkCommand returns the reason to reject the PDU, or 0.
func (c *Connection) checkCommand(p *pdu.SCSICommand, r *request) pdu.RejectReason {
	s := &c.session.params
	switch {
	case c.session.target == nil:
		return pdu.RejectProtocolError // discovery sessions carry no SCSI
	case c.tasks.find(r.bhs.ITT()) != nil:
		return pdu.RejectTaskInProgress
	case r.bhs.ITT() == pdu.ReservedTag:
		return pdu.RejectInvalidPDUField
	case !s.ImmediateData && len(r.data) > 0,
		len(r.data) > 0 && uint32(len(r.data)) > s.FirstBurstLength,
		len(r.data) > 0 && !p.Write(),
		uint32(len(r.data)) > p.ExpectedDataTransferLength(),
		!r.bhs.Final() && (s.InitialR2T || !p.Write()):
		return pdu.RejectProtocolError
	case r.bhs.Immediate() && c.immediates >= maxImmediates:
		return pdu.RejectImmediateCommand
	}
	return 0
}

// init fills in the task from its header.
func (t *task) init(p *pdu.SCSICommand, ahs []byte) error {
	t.moved = t.conn.thread.loop.Now()
	t.itt, t.lunField, t.cmdSN, t.expStatSN = p.BHS().ITT(), p.BHS().LUN(), p.BHS().CmdSN(), p.BHS().ExpStatSN()
	cmd := &t.cmd
	n := copy(cmd.CDB[:], p.CDB()[:])
	if len(ahs) > 0 {
		cdb, err := p.AppendCDB(cmd.CDB[:0], ahs)
		if err != nil {
			return err
		}
		n = copy(cmd.CDB[:], cdb)
	}
	clear(cmd.CDB[n:])
	cmd.CDBLength = n
	cmd.Attribute = scsi.TaskAttribute(p.Attribute())
	cmd.EDTL = p.ExpectedDataTransferLength()
	cmd.HasIn, cmd.HasOut = p.Read(), p.Write()
	cmd.Port = t
	return nil
}

// execute runs the command, after what its unasked data needs has been set
// aside: when the memory for that is not there, the initiator has to come
// again (TASK SET FULL), because its data cannot wait outside.
func (c *Connection) execute(t *task, p *pdu.SCSICommand, r *request) {
	t.cmd.Nexus = c.nowhere // until its LUN is known
	if r.badDigest {
		c.dropPlaced()
		c.reject(r, pdu.RejectDataDigestError)
		if c.recall == nil {
			t.cmd.Fail(scsi.ProtocolServiceCRCError)
			return
		}
		r.data = nil // it is asked for like data that never came, and so is what follows it unasked
	}
	t.lun = c.findLUN(t.lunField)
	if p.Write() && !c.prepareDataOut(t, p, r) {
		t.cmd.FailStatus(c.comeAgain())
		return
	}
	if t.lun == nil {
		scsi.ExecuteNoLU(&t.cmd)
		return
	}
	t.lun.ops++
	c.gather(t)
	t.cmd.Nexus, t.cmd.Lane = t.lun.nexus, t.lun.lane
	if !c.thread.gate.admit(t) {
		t.await()
		return
	}
	c.run(t)
}

// run hands the command to its unit. While it waits for others of its task set it
// holds no buffer: those that it waits for may need the very memory.
func (c *Connection) run(t *task) {
	t.lun.nexus.LU.Execute(&t.cmd)
	switch {
	case t.ended:
	case t.stray, t.early != nil && t.cmd.Dormant() && !t.unload():
		t.cmd.FailStatus(c.comeAgain())
	default:
		t.keepImmediate()
	}
}

// unload takes the unasked data of a command that waits out of its buffer, and
// gives what follows a place. False says that the session keeps too much already.
func (t *task) unload() bool {
	landed := t.early.Bytes()
	landed = landed[:min(cap(landed), int(t.unsolicited.end))]
	if t.conn.kept+len(landed) > maxKept {
		return false
	}
	t.stash = make([]byte, len(landed))
	t.conn.kept += len(t.stash)
	buf.Copy(t.stash, landed[:min(len(landed), int(t.unsolicited.next))])
	t.cmd.Immediate = nil
	t.conn.withdraw(t)
	t.early.Release()
	t.early = nil
	return true
}

// keepImmediate copies immediate data out of the receive buffer while the
// command, which waits for memory, has not asked for all of it.
func (t *task) keepImmediate() {
	if t.cmd.Immediate != nil && t.early == nil && t.taken < uint32(len(t.cmd.Immediate)) {
		t.stash = make([]byte, len(t.cmd.Immediate))
		buf.Copy(t.stash, t.cmd.Immediate)
		t.conn.kept += len(t.stash)
	}
	t.cmd.Immediate = nil
}

// comeAgain is the status that makes the initiator repeat a command: TASK SET
// FULL waits for one of its commands to end, so who has no other gets BUSY
// (SAM-5 clause 5.3.1).
func (c *core) comeAgain() scsi.Status {
	if c.live > 1 {
		return scsi.TaskSetFull
	}
	return scsi.Busy
}

// prepareDataOut says which data comes unasked, and where the part of it that
// is there lies.
func (c *Connection) prepareDataOut(t *task, p *pdu.SCSICommand, r *request) bool {
	data, edtl := r.data, t.cmd.EDTL
	n := uint32(len(data))
	t.unsolicited = sequence{open: !p.BHS().Final(), ttt: pdu.ReservedTag, next: n, end: n}
	t.unsolicited.broken = r.badDigest
	if t.unsolicited.open {
		t.unsolicited.end = min(c.session.params.FirstBurstLength, edtl)
		t.claimed = c.claim()
	}
	placed := c.takePlaced()
	if n == edtl && n > 0 {
		if placed == nil && c.kept+len(data) > maxKept {
			return false
		}
		t.cmd.Immediate = data
		t.early = placed
		return true
	}
	if edtl == 0 || n == 0 && !t.unsolicited.open {
		releaseRef(placed)
		return true
	}
	if placed == nil {
		size := t.lun.landing(&t.cmd.CDB, edtl)
		if size == 0 { // it is going to be refused
			t.stray = true
			return true
		}
		if placed = c.get(size); placed == nil {
			return false
		}
		buf.Copy(placed.Bytes(), data)
	}
	t.early = placed
	return true
}

// landing returns the size of a buffer for the unasked data of a write of edtl bytes, 0
// if nobody is going to want them: the LUN does not exist or the command is refused. It
// is as large as the write's first segment, so that the command can go on with the very
// same memory.
func (l *lun) landing(cdb *scsi.CDB, edtl uint32) int {
	if l == nil {
		return 0
	}
	return min(int(scsi.Wants(l.nexus, cdb, edtl)), scsi.SegmentSize)
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
		size := c.findLUN(bhs.LUN()).landing(&cdb, p.ExpectedDataTransferLength())
		if n > size {
			return nil
		}
		c.dropPlaced()
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

// takePlaced hands out the buffer that Place put immediate data into.
func (c *Connection) takePlaced() *buf.Ref {
	ref := c.placed
	c.placed = nil
	return ref
}

// dropPlaced releases it when its command is not taken.
func (c *Connection) dropPlaced() { releaseRef(c.takePlaced()) }

// dataOut takes a Data-Out PDU (RFC 7143 section 11.7). Data of a task that is
// not there any more, because it failed or was aborted, is dropped.
func (c *Connection) dataOut(r *request) {
	t := c.tasks.find(r.bhs.ITT())
	if t == nil {
		c.holdData(r)
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
		c.rare.log(c.log, slog.LevelWarn, "Data-Out out of sequence", "itt", t.itt, "offset", p.BufferOffset(), "length", len(r.data),
			"datasn", uint32(p.DataSN()), "sense", fault)
		t.fail(fault)
	}
}

// fail ends the task's command with sense, when what runs for it has ended.
func (t *task) fail(s *scsi.Sense) {
	t.conn.waiters.remove(t)
	t.wanted, t.r2tCount = 0, 0
	t.unsolicited.open = false
	t.cmd.FailTransfer(s)
}
