package target

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"lunar/internal/buf"
	"lunar/internal/latency"
	"lunar/internal/refusals"
	"lunar/internal/waits"
	"lunar/target/pdu"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// scsiCommand takes a SCSI command (RFC 7143 section 11.3) from its PDU to the
// device server.
func (c *Connection) scsiCommand(r *request) {
	h := (*pdu.SCSICommand)(r.bhs).Decode()
	if fault := c.checkCommand(&h, r); fault != 0 {
		c.releasePlaced()
		c.releasePlace(r)
		c.reject(r, fault)
		return
	}
	t := c.thread.newTask(c)
	t.windowed = !h.Immediate
	if !t.windowed {
		c.immediates++
	}
	if err := t.init(&h, r); err != nil {
		c.violation("SCSI command %#x: %w", h.ITT, err)
		t.end()
		return
	}
	c.tasks.insert(t)
	c.enter(t)
	c.execute(t, h.Final, r)
	c.exit(t)
}

// checkCommand returns the reason to reject the PDU, or 0.
func (c *Connection) checkCommand(h *pdu.SCSICommandFields, r *request) pdu.RejectReason {
	s := &c.session.params
	switch {
	case c.session.target == nil:
		return pdu.RejectProtocolError // discovery sessions carry no SCSI
	case c.tasks.find(h.ITT) != nil:
		return pdu.RejectTaskInProgress
	case h.ITT == pdu.ReservedTag:
		return pdu.RejectInvalidPDUField
	case !s.ImmediateData && len(r.data) > 0,
		len(r.data) > 0 && uint32(len(r.data)) > s.FirstBurstLength,
		len(r.data) > 0 && !h.Write,
		uint32(len(r.data)) > h.EDTL,
		!h.Final && (s.InitialR2T || !h.Write):
		return pdu.RejectProtocolError
	case h.Immediate && c.immediates >= maxImmediates:
		return pdu.RejectImmediateCommand
	}
	return 0
}

// init fills in the task from its header and what follows that.
func (t *task) init(h *pdu.SCSICommandFields, r *request) error {
	t.came, t.moved = t.conn.thread.latency.begin(), t.conn.thread.loop.Now()
	t.itt, t.lunField, t.cmdSN = h.ITT, h.LUN, h.CmdSN
	cmd := &t.cmd
	n := copy(cmd.CDB[:], h.CDB[:])
	cmd.ReadEDTL = 0
	if len(r.ahs) > 0 {
		cdb, err := (*pdu.SCSICommand)(r.bhs).AppendCDB(cmd.CDB[:0], r.ahs)
		if err != nil {
			return err
		}
		if cmd.ReadEDTL, _, err = pdu.BidirectionalReadLength(r.ahs); err != nil {
			return err
		}
		n = copy(cmd.CDB[:], cdb)
	}
	clear(cmd.CDB[n:])
	cmd.CDBLength = n
	cmd.Attribute = scsi.TaskAttribute(h.Attribute)
	cmd.EDTL, cmd.HasIn, cmd.HasOut = h.EDTL, h.Read, h.Write
	cmd.Port = t
	return nil
}

// execute runs the command, after what its unasked data needs has been set
// aside: when the memory for that is not there, the initiator has to come
// again (TASK SET FULL), because its data cannot wait outside. final says that none
// follows.
func (c *Connection) execute(t *task, final bool, r *request) {
	t.cmd.Nexus = c.nowhere // until its LUN is known
	if r.badDigest {
		c.releasePlaced()
		c.reject(r, pdu.RejectDataDigestError)
		if c.recall == nil {
			t.cmd.Fail(sense.ProtocolServiceCRCError)
			return
		}
		r.data = nil // it is asked for like data that never came, and so is what follows it unasked
	}
	t.lun = c.findLUN(t.lunField)
	if t.cmd.HasOut && !c.prepareDataOut(t, final, r) {
		c.thread.refused.count(refusals.Memory)
		t.cmd.FailStatus(c.comeAgain())
		return
	}
	if t.lun == nil {
		scsi.ExecuteNoLU(&t.cmd)
		return
	}
	t.lun.ops++
	c.recent = t.lun
	t.cmd.Nexus, t.cmd.Lane = t.lun.nexus, t.lun.lane
	if c.thread.gate.ruled && !c.thread.gate.admit(t) {
		t.await()
		return
	}
	c.run(t)
}

// admit reports whether the task may run now; else the gate has it until
// dispatch. Commands that the table exempts never wait.
func (g *gate) admit(t *task) bool {
	if !g.Active() || scsi.Exempt(&t.cmd) {
		return true
	}
	q := &t.qos
	q.Owner, q.Hit, q.Bytes = t, false, int64(t.cmd.EDTL)
	q.Cost = g.cost.Of(q.Bytes, t.cmd.HasOut)
	queue := t.lun.queue
	if queue.Tagged() {
		queue = g.tagged(t)
	}
	if g.Admit(queue, q, g.loop.Now()) {
		t.turn = underway
		return true
	}
	t.turn = queued
	t.conn.window.Queued(1)
	g.later()
	return false
}

// turn is where a task stands with the gate.
type turn uint8

const (
	ungated  turn = iota // the gate knows nothing of it
	queued               // it waits in the gate
	underway             // the gate counts it as under way
)

// await keeps what came with a command that waits in the gate: its immediate
// data, which lies in the receive buffer.
func (t *task) await() {
	c := t.conn
	if t.cmd.Immediate == nil || t.landing != nil {
		t.cmd.Immediate = nil
		return
	}
	if n := len(t.cmd.Immediate); n > scsi.SegmentSize {
		t.keepImmediate()
	} else if ref := c.get(n); ref != nil {
		t.landing = ref
		copy(ref.Bytes(), t.cmd.Immediate)
		t.cmd.Immediate = nil
	} else {
		t.keepImmediate()
	}
}

// passed implements waiter: it runs a task that has waited in the gate.
func (t *task) passed() {
	c := t.conn
	t.turn = underway
	c.window.Queued(-1)
	defer c.sessionState.Contain()
	c.enter(t)
	c.run(t)
	c.exit(t)
}

// run hands the command to its unit. While it waits for others of its task set it
// holds no buffer: those that it waits for may need the very memory.
func (c *Connection) run(t *task) {
	t.lun.nexus.LU.Execute(&t.cmd)
	switch {
	case t.ended:
	case t.stray, t.landing != nil && t.cmd.Dormant() && !t.unload():
		c.thread.refused.count(refusals.Memory)
		t.cmd.FailStatus(c.comeAgain())
	default:
		t.keepImmediate()
	}
}

// comeAgain is the status that makes the initiator repeat a command: TASK SET
// FULL waits for one of its commands to end, so who has no other gets BUSY
// (SAM-5 clause 5.3.1).
func (c *sessionState) comeAgain() scsi.Status {
	if c.live > 1 {
		return scsi.TaskSetFull
	}
	return scsi.Busy
}

// Alloc implements scsi.Port. Whoever has to wait is served in order of
// arrival by thread.feed.
func (t *task) Alloc(cmd *scsi.Command, n int) *buf.Ref {
	if ref := t.landing; ref != nil {
		if cmd.Landing() && n == len(ref.Bytes()) {
			t.landing = nil
			return ref
		}
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

// Relayed implements scsi.Tracer.
func (t *task) Relayed(_ *scsi.Command, how scsi.Relayed) {
	if c := t.conn; c.trace != nil {
		c.trace.relayed(c, t.itt, t.lunField, how)
	}
}

// SendDataIn implements scsi.Port: it cuts data into Data-In PDUs no longer
// than the transport takes, and into sequences no longer than MaxBurstLength
// (RFC 7143 sections 11.7 and 13.13). Every call ends a sequence: it is the
// last one if the command fails after it.
func (t *task) SendDataIn(cmd *scsi.Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	c := t.conn
	if c.closed && !c.lost {
		releaseRef(ref)
		if last {
			t.end()
		}
		return
	}
	if c.assist != nil {
		t.putAssisted(cmd, off, ref, data, last)
		return
	}
	maxBurst := uint32(c.session.params.MaxBurstLength)
	for {
		n := min(uint32(len(data)), c.maxDataIn, maxBurst-t.burst)
		t.burst += n
		whole := n == uint32(len(data))
		// What may be sent again has its status in a PDU of its own, and so has what has two residuals.
		final := last && whole && c.recall == nil && !cmd.HasOut
		f := pdu.DataInFields{ITT: t.itt, DataSN: t.dataSN, Offset: off, Length: int(n), Final: whole || t.burst == maxBurst}
		if f.Final {
			t.burst = 0
			if c.recall != nil && !(last && whole) { // so that what was sent need not be kept (RFC 7143 section 11.7.2)
				f.Acknowledge, f.LUN, f.TTT = true, t.lunField, c.newTTT()
			}
		}
		t.dataSN++
		if final {
			f.HasStatus, f.Status, f.Residual = true, uint8(scsi.Good), t.residual(cmd)
		}
		if ref != nil && !whole {
			ref.Retain()
		}
		t.sent = off + n
		if final {
			t.end() // before the PDU leaves, so that its MaxCmdSN gives the task's place back
		}
		c.mover.PutData((*pdu.DataIn)(&c.header).Encode(&f), data[:n:n], ref)
		if whole && last && !final {
			t.respond(cmd)
		}
		if whole {
			return
		}
		data, off = data[n:], off+n
	}
}

// Complete implements scsi.Port: the SCSI Response (RFC 7143 section 11.4).
func (t *task) Complete(cmd *scsi.Command) {
	c := t.conn
	if c.closed && !c.lost || cmd.Aborted() {
		t.endUnanswered()
		return
	}
	t.respond(cmd)
}

// Contain implements scsi.Port.
func (t *task) Contain(*scsi.Command) {
	if p := recover(); p != nil {
		c := t.conn
		if c == nil {
			panic(p) // the command has ended: there is no session to blame
		}
		c.log.Error("panic in command: its session is closed, others go on", "panic", p, "stack", string(debug.Stack()))
		t.discard()
		c.closeAll(fmt.Errorf("internal error: %v", p))
	}
}

// respond sends the command's status and ends the task.
func (t *task) respond(cmd *scsi.Command) {
	c := t.conn
	f := pdu.SCSIResponseFields{
		ITT: t.itt, SNACKTag: t.snackTag, Response: pdu.ResponseCompleted, Status: uint8(cmd.Status), ExpDataSN: t.dataSN, Residual: t.residual(cmd),
	}
	if cmd.HasIn && cmd.HasOut {
		f.BidirectionalReadResidual = t.readResidual(cmd)
	}
	var data []byte
	if cmd.Sense != nil {
		c.thread.incidents.sensed(cmd.Sense)
		if cmd.Sense == sense.WriteProtected {
			c.thread.refused.count(refusals.Write)
			c.rare.Log(c.log, slog.LevelInfo, "command refused: write protected", "command", cmd.Row().Name, "lun", t.lunField>>48)
		}
		sense := cmd.AppendSense(nil)
		data = pdu.AppendSense(nil, sense[:min(len(sense), c.maxControl()-pdu.SenseLengthSize)])
	}
	f.Length = len(data)
	(*pdu.SCSIResponse)(&c.header).Encode(&f)
	c.mover.SendControl(&c.header, data, nil)
	t.end()
}

// residual is the difference between what the initiator expected and what the command
// asks for of that kind (RFC 7143 section 11.4.5.1), or, of a read that has failed, what
// it got.
func (t *task) residual(cmd *scsi.Command) pdu.Residual {
	asked := cmd.Length
	switch other := cmd.HasOut != cmd.Takes || !cmd.HasOut && !cmd.HasIn; {
	case other && (cmd.EDTL > 0 || cmd.HasIn && cmd.HasOut): // EDTL is about what the command has none of
		asked = 0
	case !cmd.HasOut:
		asked = t.got(cmd, cmd.EDTL)
	}
	return difference(asked, cmd.EDTL)
}

// readResidual is the same of the Data-In of a command that may have both kinds (RFC
// 7143 section 11.4.5.2).
func (t *task) readResidual(cmd *scsi.Command) pdu.Residual {
	if cmd.Takes {
		return difference(0, cmd.ReadEDTL)
	}
	return difference(t.got(cmd, cmd.ReadEDTL), cmd.ReadEDTL)
}

// got is how much Data-In the command asks for, or sent before it failed.
func (t *task) got(cmd *scsi.Command, expected uint32) uint32 {
	if cmd.Status != scsi.Good && t.sent < expected {
		return t.sent
	}
	return cmd.Length
}

// difference tells an overflow or underflow.
func difference(asked, expected uint32) pdu.Residual {
	return pdu.Residual{Over: asked > expected, Under: asked < expected, Count: max(asked, expected) - min(asked, expected)}
}

// end takes the task off its connection once its status is queued, or will
// never be sent.
func (t *task) end() {
	if t.discarded {
		return
	}
	c := t.conn
	waiting := t.detach()
	if c.executing == t {
		t.ended = true // command.go recycles it once Execute has returned
	} else {
		c.thread.recycle(t)
	}
	if len(waiting) > 0 {
		waiting.Ended()
	}
	c.taskEnded()
}

// detach undoes what ties the task to its connection and returns those who wait for
// its end.
func (t *task) detach() waits.List {
	c := t.conn
	if c.placing != nil {
		c.revokePlace(t)
	}
	if t.landing != nil {
		t.landing.Release()
		t.landing = nil
	}
	if t.listed {
		c.tasks.remove(t)
	}
	if t.turn != ungated {
		c.thread.gate.left(t)
	}
	if t.payment != nil {
		t.payment.cancel()
		t.payment = nil
	}
	if t.asked > 0 || t.paced {
		c.pacing.leave(t)
	}
	if t.windowed {
		c.window.Done()
	} else {
		c.immediates--
	}
	if t.cmd.Aborted() {
		c.thread.incidents.aborted.Add(1)
	}
	if len(t.used) > 0 {
		t.releaseUnits()
	}
	if t.cmd.Effort > 0 {
		c.charge(t.cmd.Effort)
	}
	c.stashed -= len(t.stash)
	c.live--
	c.own--
	c.traffic.inFlight.Add(-1)
	if t.lun != nil {
		t.count(t.lun.traffic)
		t.time()
	}
	if c.shared {
		t.count(&c.carried)
	}
	if c.assist != nil {
		c.assist.Deallocate(t.itt)
	}
	return t.awaitedBy
}

// count counts a command that has ended.
func (t *task) count(to *lunTraffic) {
	switch cmd := &t.cmd; {
	case cmd.HasIn:
		to.reads.Add(1)
		to.read.Add(uint64(t.sent))
	case cmd.HasOut:
		to.writes.Add(1)
		if cmd.Takes && cmd.Status == scsi.Good && !cmd.Aborted() {
			to.written.Add(uint64(min(cmd.Length, cmd.EDTL)))
		}
	default:
		to.others.Add(1)
	}
}

// time counts how long a command took that has ended, if it uses the medium.
func (t *task) time() {
	cmd := &t.cmd
	if row := cmd.Row(); row == nil || row.Exempt {
		return
	}
	slot := t.lun.latency
	if !slot.Stands() {
		slot = t.conn.openLatency(t.lun)
	}
	op := latency.Other
	switch {
	case cmd.HasIn:
		op = latency.Read
	case cmd.HasOut:
		op = latency.Write
	}
	t.conn.thread.latency.end(slot, op, t.came)
}

// taskEnded follows every end of a task.
func (c *Connection) taskEnded() {
	if len(c.unmapped) > 0 {
		c.removeUnmapped()
	}
	if c.closed {
		c.endIfIdle()
	} else if c.migration.next != nil {
		c.moveIfIdle()
	}
}

// left tells the gate that the task has ended.
func (g *gate) left(t *task) {
	switch t.turn {
	case queued:
		t.conn.window.Queued(-1)
		g.Cancel(&t.qos, g.loop.Now())
	case underway:
		t.qos.Hit = t.cmd.Hit()
		g.Done(&t.qos, g.loop.Now())
	default:
		return
	}
	t.turn = ungated
	if g.Waiting() > 0 {
		g.later()
	}
}

// enter begins the execution of a task's command, exit ends it: a task that ends
// meanwhile is recycled only then.
func (c *sessionState) enter(t *task) { c.executing, c.calling = t, t }

func (c *sessionState) exit(t *task) {
	c.executing, c.calling = nil, nil
	if t.ended {
		c.thread.recycle(t)
	}
}
