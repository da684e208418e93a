package target

import (
	"slices"

	"lunar/internal/buf"
	"lunar/target/pdu"
)

// maxRecalled bounds the data that a connection keeps for retransmission, in bytes:
// those of Data-In at ErrorRecoveryLevel 1, and as many of other PDUs; maxRecalledPDUs
// bounds the number of either. The oldest is forgotten beyond it: who asks for it then
// gets a Reject.
const (
	maxRecalled     = 4 << 20
	maxRecalledPDUs = 2 * maxQueued
)

// Resender is a Datamover that sends PDUs again. Other transports lose none.
type Resender interface {
	Datamover
	// Resend sends a PDU that was stamped before: only what the command window is
	// now is set in it (Receiver.Restamp). data must stay as it is.
	Resend(bhs *pdu.BHS, data []byte)
}

// recall is the Datamover of a connection from ErrorRecoveryLevel 1 on: it keeps what it
// sends until the initiator has it, by ExpStatSN or a DataACK, to send it again when a
// SNACK asks for it (RFC 7143 section 7.1.4.2). Data are kept as copies, so that no
// buffer that others wait for depends on an acknowledgement.
//
// At level 2 no data are forgotten, since they may be all that is left of a task. The
// copies count in the session's memory instead: reads wait until others have been
// acknowledged, for which the initiator is asked. On a connection that is lost nothing
// can be acknowledged; what it keeps is bounded apart (retain.go).
type recall struct {
	Resender
	conn     *Connection
	lasting  bool       // at level 2
	counted  bool       // the data count in the session's memory
	statuses []recalled // in order of StatSN; those at the end are not stamped yet
	stamped  int        // of statuses
	owed     int        // bytes of their data
	parts    parts      // Data-In and R2T
	retained bool       // the data count in what the server keeps for lost connections

	asked uint32 // Target Transfer Tag of the NOP-In that asks for an acknowledgement, or 0
	fresh bool   // something was sent since
}

// recalled is a PDU that was sent, or is in the send queue.
type recalled struct {
	bhs  pdu.BHS
	data []byte
	turn uint64 // of a response: which is the later of two
}

// answers reports whether it is the response of a task with the tag.
func (s *recalled) answers(itt uint32) bool { return s.lasts() && s.bhs.ITT() == itt }

// lasts reports whether it is the response of a task that can be reassigned, which RFC
// 7143 section 11.5.1 says of SCSI tasks and of tagged iSCSI operations. Pings and
// logouts are simply sent again.
func (s *recalled) lasts() bool {
	switch s.bhs.Opcode() {
	case pdu.OpSCSIResponse, pdu.OpTaskManagementResponse, pdu.OpTextResponse:
		return true
	}
	return false
}

// sn is the DataSN, or the R2TSN, which has the same place.
func (s *recalled) sn() pdu.SN { return (*pdu.DataIn)(&s.bhs).DataSN() }

// remember puts a recall in front of the connection's Datamover.
func (c *Connection) remember() {
	if r, ok := c.mover.(Resender); ok && c.session.params.ErrorRecoveryLevel > 0 {
		c.recall = &recall{Resender: r, conn: c, lasting: c.session.recovers(), counted: c.session.recovers()}
		c.mover = c.recall
	}
}

// takesStatSN reports whether a PDU of those that SendControl gets uses up a StatSN.
func takesStatSN(bhs *pdu.BHS) bool {
	return bhs.Opcode() != pdu.OpNOPIn || bhs.ITT() != pdu.ReservedTag
}

// SendControl implements Datamover.
func (r *recall) SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	if takesStatSN(bhs) {
		kept := data
		if ref != nil {
			kept = slices.Clone(data)
		}
		r.conn.answers++
		r.statuses = append(r.statuses, recalled{*bhs, kept, r.conn.answers})
		r.owed += len(kept)
		for r.stamped > 0 && (len(r.statuses) > maxRecalledPDUs || r.owed > maxRecalled) {
			r.dropStatus()
		}
	}
	r.Resender.SendControl(bhs, data, ref)
	if takesStatSN(bhs) {
		r.sent()
	}
}

// dropStatus forgets the oldest status, which was sent, and what was sent for the task
// that it ended.
func (r *recall) dropStatus() {
	if s := &r.statuses[0]; s.bhs.Opcode() == pdu.OpSCSIResponse {
		r.take(s.bhs.ITT())
	}
	r.owed -= len(r.statuses[0].data)
	r.statuses[0] = recalled{}
	r.statuses = r.statuses[1:]
	r.stamped--
}

// PutData implements Datamover.
func (r *recall) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	r.keep(bhs.BHS(), slices.Clone(data))
	r.Resender.PutData(bhs, data, ref)
	r.sent()
}

// GetData implements Datamover.
func (r *recall) GetData(bhs *pdu.R2T) {
	if t := r.conn.tasks.find(bhs.BHS().ITT()); r.lasting && t != nil {
		r.forget(t.itt, func(p *recalled) bool { // what has been answered is not missed
			return p.bhs.Opcode() == pdu.OpR2T && t.sequenceOf(p.bhs.TTT()) == nil
		})
	}
	r.keep(bhs.BHS(), nil)
	r.Resender.GetData(bhs)
}

func (r *recall) keep(bhs *pdu.BHS, data []byte) {
	r.parts.add(recalled{bhs: *bhs, data: data})
	r.account(len(data))
	for !r.lasting && (r.parts.bytes > maxRecalled || r.parts.n > maxRecalledPDUs) {
		r.parts.dropFirst()
	}
}

// SetMaxDataIn follows a new declaration of the initiator.
func (r *recall) SetMaxDataIn(n int) {
	if m, ok := r.Resender.(interface{ SetMaxDataIn(int) }); ok {
		m.SetMaxDataIn(n)
	}
}

// Owed implements Debtor.
func (r *recall) Owed() Owed {
	if m, ok := r.Resender.(Debtor); ok {
		return m.Owed()
	}
	return Owed{}
}

// numbered notes the StatSN of the oldest status that had none.
func (r *recall) numbered(sn pdu.SN) {
	if r.stamped < len(r.statuses) {
		r.statuses[r.stamped].bhs.SetStatSN(sn)
		r.stamped++
	}
}

// acknowledged forgets the statuses before ExpStatSN, and what was sent for the tasks
// that they ended.
func (r *recall) acknowledged(exp pdu.SN) {
	for r.stamped > 0 && r.statuses[0].bhs.StatSN().LessThan(exp) {
		r.dropStatus()
	}
}

// take removes the Data-In and R2T PDUs of a task and returns them.
func (r *recall) take(itt uint32) []recalled {
	return r.forget(itt, func(*recalled) bool { return true })
}

// forget removes those that match, and returns them.
func (r *recall) forget(itt uint32, match func(*recalled) bool) []recalled {
	before := r.parts.bytes
	gone := r.parts.forget(itt, match)
	if n := before - r.parts.bytes; n > 0 {
		r.account(-n)
	}
	return gone
}

// account counts bytes that are kept, or forgotten: in the session's memory, or of a lost
// connection in what the server keeps for all of them.
func (r *recall) account(n int) {
	switch {
	case r.retained:
		r.conn.session.server.retained.Add(int64(n))
	case r.counted:
		r.conn.charged.Add(n)
		if n < 0 {
			r.conn.thread.freed()
		}
	}
}

// retire follows the loss of the connection: of all statuses those of tasks are kept.
func (r *recall) retire() {
	r.account(-r.parts.bytes)
	r.retained = true
	r.account(r.parts.bytes)
	r.statuses = slices.DeleteFunc(r.statuses, func(s recalled) bool { return !s.lasts() })
	r.stamped, r.owed = 0, 0 // nothing is acknowledged any more
}

// drop forgets everything.
func (r *recall) drop() {
	r.account(-r.parts.bytes)
	r.statuses, r.parts = nil, parts{}
	r.stamped, r.owed = 0, 0
}

// sent follows what is to be acknowledged.
func (r *recall) sent() {
	r.fresh = true
	if r.lasting && r.conn.waiters.head != nil {
		r.conn.askForACKs()
	}
}

// askForACKs has the initiator acknowledge what keeps memory that others wait for: its
// answer to a NOP-In carries ExpStatSN.
func (c *core) askForACKs() {
	for _, o := range c.conns {
		if r := o.recall; r != nil && r.lasting && !o.closed && r.parts.bytes > 0 && r.fresh && r.asked == 0 {
			r.asked, r.fresh = o.ask(), false
		}
	}
}

// acknowledges takes an answer to a NOP-In of the connection.
func (r *recall) acknowledges(ttt uint32) {
	if r.asked != ttt || ttt == 0 {
		return
	}
	r.asked = 0
	if r.conn.waiters.head != nil {
		r.conn.askForACKs()
	}
}

// Restamp implements Receiver.
func (c *Connection) Restamp(bhs *pdu.BHS) {
	exp, max := c.window.Grant()
	bhs.SetExpCmdSN(exp)
	bhs.SetMaxCmdSN(max)
	if bhs.Opcode() == pdu.OpR2T {
		bhs.SetStatSN(c.statSN)
	}
}
