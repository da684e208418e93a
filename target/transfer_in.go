package target

import (
	"log/slog"

	"lunar/internal/buf"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

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
	maxPDU, maxBurst := uint32(c.mover.MaxDataIn()), uint32(c.session.params.MaxBurstLength)
	for {
		n := min(uint32(len(data)), maxPDU, maxBurst-t.burst)
		t.burst += n
		whole := n == uint32(len(data))
		final := last && whole && c.recall == nil // what may be sent again has its status in a PDU of its own
		p := (*pdu.DataIn)(&c.header).Init()
		p.BHS().SetTTT(pdu.ReservedTag)
		if whole || t.burst == maxBurst {
			p.BHS().SetFinal(true)
			t.burst = 0
			if c.recall != nil && !(last && whole) {
				t.askForACK(p)
			}
		}
		p.BHS().SetDataSegmentLength(int(n))
		p.BHS().SetITT(t.itt)
		p.SetDataSN(t.dataSN)
		t.dataSN++
		p.SetBufferOffset(off)
		if final {
			p.SetHasStatus(true)
			p.SetStatus(uint8(scsi.Good))
			over, under, count := t.residual(cmd)
			p.SetOverflow(over)
			p.SetUnderflow(under)
			p.SetResidualCount(count)
		}
		if ref != nil && !whole {
			ref.Retain()
		}
		t.sent = off + n
		if final {
			t.end() // before the PDU leaves, so that its MaxCmdSN gives the task's place back
		}
		c.mover.PutData(p, data[:n:n], ref)
		if whole && last && !final {
			t.respond(cmd)
		}
		if whole {
			return
		}
		data, off = data[n:], off+n
	}
}

// askForACK makes the end of a sequence ask for a DataACK, so that what was sent need
// not be kept (RFC 7143 section 11.7.2).
func (t *task) askForACK(p *pdu.DataIn) {
	p.SetAcknowledge(true)
	p.BHS().SetLUN(t.lunField)
	p.BHS().SetTTT(t.conn.newTTT())
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

// respond sends the command's status and ends the task.
func (t *task) respond(cmd *scsi.Command) {
	c := t.conn
	p := (*pdu.SCSIResponse)(&c.header).Init()
	p.SetResponse(pdu.ResponseCompleted)
	p.SetStatus(uint8(cmd.Status))
	p.BHS().SetITT(t.itt)
	p.SetExpDataSN(t.dataSN)
	p.BHS().SetTTT(t.snackTag)
	over, under, count := t.residual(cmd)
	p.SetOverflow(over)
	p.SetUnderflow(under)
	p.SetResidualCount(count)
	var data []byte
	if cmd.Sense != nil {
		if cmd.Sense == scsi.WriteProtected {
			c.thread.refused.count(RefusedWrite)
			c.rare.log(c.log, slog.LevelInfo, "command refused: write protected", "command", cmd.Row().Name, "lun", t.lunField>>48)
		}
		sense := cmd.AppendSense(nil)
		data = pdu.AppendSense(nil, sense[:min(len(sense), c.maxControl()-pdu.SenseLengthSize)])
	}
	p.BHS().SetDataSegmentLength(len(data))
	c.mover.SendControl(p.BHS(), data, nil)
	t.end()
}

// residual is the difference between what the initiator expected and what the
// command asks for (RFC 7143 section 11.4.5), or, of a read that has failed,
// what it got.
func (t *task) residual(cmd *scsi.Command) (over, under bool, count uint32) {
	switch {
	case cmd.HasIn && cmd.Status != scsi.Good && t.sent < cmd.EDTL:
		return false, true, cmd.EDTL - t.sent
	case cmd.Length > cmd.EDTL:
		return true, false, cmd.Length - cmd.EDTL
	case cmd.Length < cmd.EDTL:
		return false, true, cmd.EDTL - cmd.Length
	}
	return false, false, 0
}

func releaseRef(ref *buf.Ref) {
	if ref != nil {
		ref.Release()
	}
}
