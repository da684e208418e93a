package target

import (
	"slices"
	"time"

	"lunar/internal/buf"
	"lunar/target/pdu"
)

// maxRecalled bounds the data that a connection keeps for retransmission, in bytes:
// those of Data-In, and as many of other PDUs; maxRecalledPDUs bounds the number of
// either. The oldest is forgotten beyond it: who asks for it then gets a Reject.
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

// recall is the Datamover of a connection at ErrorRecoveryLevel 1: it keeps what it
// sends until the initiator has it, by ExpStatSN or a DataACK, to send it again when a
// SNACK asks for it (RFC 7143 section 7.1.4.2). Data are kept as copies, so that no
// buffer that others wait for depends on an acknowledgement.
type recall struct {
	Resender
	conn     *Connection
	statuses []recalled // in order of StatSN; those at the end are not stamped yet
	stamped  int        // of statuses
	owed     int        // bytes of their data
	parts    []recalled // Data-In and R2T, in the order in which they were sent
	bytes    int        // of their data
}

// recalled is a PDU that was sent, or is in the send queue.
type recalled struct {
	bhs  pdu.BHS
	data []byte
}

// remember puts a recall in front of the connection's Datamover.
func (c *Connection) remember() {
	if r, ok := c.mover.(Resender); ok && c.session.params.ErrorRecoveryLevel > 0 {
		c.recall = &recall{Resender: r, conn: c}
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
		r.statuses = append(r.statuses, recalled{*bhs, kept})
		r.owed += len(kept)
		for r.stamped > 0 && (len(r.statuses) > maxRecalledPDUs || r.owed > maxRecalled) {
			r.dropStatus()
		}
	}
	r.Resender.SendControl(bhs, data, ref)
}

// dropStatus forgets the oldest status, which was sent.
func (r *recall) dropStatus() {
	r.owed -= len(r.statuses[0].data)
	r.statuses[0] = recalled{}
	r.statuses = r.statuses[1:]
	r.stamped--
}

// PutData implements Datamover.
func (r *recall) PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref) {
	r.keep(bhs.BHS(), slices.Clone(data))
	r.Resender.PutData(bhs, data, ref)
}

// GetData implements Datamover.
func (r *recall) GetData(bhs *pdu.R2T) {
	r.keep(bhs.BHS(), nil)
	r.Resender.GetData(bhs)
}

func (r *recall) keep(bhs *pdu.BHS, data []byte) {
	r.parts = append(r.parts, recalled{*bhs, data})
	r.bytes += len(data)
	for r.bytes > maxRecalled || len(r.parts) > maxRecalledPDUs {
		r.bytes -= len(r.parts[0].data)
		r.parts[0] = recalled{}
		r.parts = r.parts[1:]
	}
}

// SetMaxDataIn follows a new declaration of the initiator.
func (r *recall) SetMaxDataIn(n int) {
	if m, ok := r.Resender.(interface{ SetMaxDataIn(int) }); ok {
		m.SetMaxDataIn(n)
	}
}

// Stalled is how long the peer has made no room for what it is owed.
func (r *recall) Stalled() time.Duration {
	if m, ok := r.Resender.(interface{ Stalled() time.Duration }); ok {
		return m.Stalled()
	}
	return 0
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
		if s := &r.statuses[0]; s.bhs.Opcode() == pdu.OpSCSIResponse {
			itt := s.bhs.ITT()
			r.forget(func(p *recalled) bool { return p.bhs.ITT() == itt })
		}
		r.dropStatus()
	}
}

func (r *recall) forget(match func(*recalled) bool) {
	if len(r.parts) == 0 {
		return
	}
	r.parts = slices.DeleteFunc(r.parts, func(p recalled) bool {
		gone := match(&p)
		if gone {
			r.bytes -= len(p.data)
		}
		return gone
	})
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
