package initiator

import "bytes"

// stepDataIn judges and stores a Data-In PDU.
func (c *Conn) stepDataIn(t *Task, p *PDU) error {
	if err := c.judgeDataIn(t, p); err != nil {
		return err
	}
	copy(t.in[p.U32(AtOffset):], p.Data)
	t.received += len(p.Data)
	t.burst += len(p.Data)
	t.dataPDUs++
	t.final = p.Has(FlagFinal)
	if t.final {
		t.burst = 0
	}
	if p.Has(FlagAck) {
		if err := c.SNACK(SNACKAck, t.ITT, p.TTT(), t.dataPDUs, 0); err != nil {
			return err
		}
	}
	if p.Has(FlagStatus) {
		t.Result.Status = p.BHS[3]
		return c.finish(t, p)
	}
	return nil
}

func (c *Conn) judgeDataIn(t *Task, p *PDU) error {
	offset := int(p.U32(AtOffset))
	switch {
	case t.Command.InLen == 0:
		return violation(p, "11.7", "data for a command without R bit")
	case p.U32(AtDataSN) != t.dataPDUs:
		return violation(p, "11.7.5", "DataSN %d, expected %d", p.U32(AtDataSN), t.dataPDUs)
	case offset+len(p.Data) > t.Command.InLen:
		return violation(p, "11.7.6", "bytes %d to %d of an expected length of %d", offset, offset+len(p.Data), t.Command.InLen)
	case c.ordered() && offset != t.received:
		return violation(p, "13.18", "buffer offset %d, the next byte in order is %d", offset, t.received)
	case t.burst+len(p.Data) > c.Params.MaxBurstLength:
		return violation(p, "13.13", "sequence of %d bytes, MaxBurstLength is %d", t.burst+len(p.Data), c.Params.MaxBurstLength)
	case p.Has(FlagAck) && c.Params.ErrorRecoveryLevel == 0:
		return violation(p, "11.7.2", "A bit at ErrorRecoveryLevel 0")
	case !p.Has(FlagAck) && p.TTT() != NoTag:
		return violation(p, "11.7.4", "target transfer tag %#08x without A bit", p.TTT())
	}
	return nil
}

// ordered reports whether all data of a command arrives in ascending order. The
// package negotiates nothing else, so a target that breaks it is at fault.
func (c *Conn) ordered() bool { return c.Params.DataPDUInOrder && c.Params.DataSequenceInOrder }

// stepR2T judges an R2T and answers it, unless the task holds its data.
func (c *Conn) stepR2T(t *Task, p *PDU) error {
	if err := c.judgeR2T(t, p); err != nil {
		return err
	}
	t.dataPDUs++
	t.asked = max(t.asked, int(p.U32(AtOffset)+p.U32(AtLength)))
	t.openTransfer[p.TTT()] = true
	if t.Command.HoldData {
		t.R2Ts = append(t.R2Ts, p)
		return nil
	}
	return c.answerR2T(t, p)
}

func (c *Conn) judgeR2T(t *Task, p *PDU) error {
	offset, length, total := int(p.U32(AtOffset)), int(p.U32(AtLength)), len(t.Command.Out)
	lun := LUN(t.Command.LUN)
	switch {
	case total == 0:
		return violation(p, "11.8", "R2T for a command without W bit")
	case p.U32(AtDataSN) != t.dataPDUs:
		return violation(p, "11.8.3", "R2TSN %d, expected %d", p.U32(AtDataSN), t.dataPDUs)
	case length == 0:
		return violation(p, "11.8.4", "desired data transfer length is 0")
	case length > c.Params.MaxBurstLength:
		return violation(p, "11.8.4", "desired data transfer length %d, MaxBurstLength is %d", length, c.Params.MaxBurstLength)
	case offset+length > total:
		return violation(p, "11.8.4", "bytes %d to %d of an expected length of %d", offset, offset+length, total)
	case c.Params.DataSequenceInOrder && offset != t.asked && (c.Params.ErrorRecoveryLevel == 0 || offset > t.asked):
		return violation(p, "13.19", "buffer offset %d, the next byte in order is %d", offset, t.asked)
	case t.openTransfer[p.TTT()]:
		return violation(p, "11.8.5", "target transfer tag %#08x is in use", p.TTT())
	case len(t.openTransfer) >= c.Params.MaxOutstandingR2T:
		return violation(p, "13.17", "%d R2Ts outstanding, MaxOutstandingR2T is %d", len(t.openTransfer)+1, c.Params.MaxOutstandingR2T)
	case !bytes.Equal(p.BHS[AtLUN:AtITT], lun[:]):
		return violation(p, "11.8", "LUN %x, the command's is %x", p.BHS[AtLUN:AtITT], lun)
	}
	return nil
}

// stepResponse judges a SCSI Response and completes its task.
func (c *Conn) stepResponse(t *Task, p *PDU) error {
	t.Result.Response, t.Result.Status = p.BHS[2], p.BHS[3]
	if len(p.Data) > 2 {
		t.Result.Sense = p.Data[2 : 2+int(p.Data[0])<<8+int(p.Data[1])]
	}
	if t.Result.Response != 0 {
		c.complete(t)
		return nil
	}
	// Whether R2Ts alone count is worded both ways in 11.4.8.
	uncounted := t.Command.InLen == 0 && p.U32(AtDataSN) == 0
	if p.U32(AtDataSN) != t.dataPDUs && !uncounted {
		return violation(p, "11.4.8", "ExpDataSN %d, %d Data-In and R2T PDUs were sent", p.U32(AtDataSN), t.dataPDUs)
	}
	if !t.final {
		return violation(p, "11.7.1", "response although the last Data-In had no F")
	}
	return c.finish(t, p)
}

// finish judges status and residual, which Data-In with S and SCSI Response
// carry alike, and completes the task.
func (c *Conn) finish(t *Task, p *PDU) error {
	r := &t.Result
	r.Residual = p.U32(AtResidual)
	r.Overflow, r.Underflow = p.Has(FlagOverflow), p.Has(FlagUnderflow)
	if p.Opcode() == OpSCSIResponse {
		r.ReadResidual = p.U32(AtOffset)
		r.ReadOverflow, r.ReadUnderflow = p.Has(FlagBidiOver), p.Has(FlagBidiUnder)
	}
	c.complete(t)
	if !knownStatus[r.Status] {
		return violation(p, "11.4.2", "status %#02x is no SCSI status", r.Status)
	}
	if p.Opcode() == OpDataIn && r.Status != StatusGood && r.Status != StatusConditionMet {
		return violation(p, "11.7.3", "status %#02x in Data-In, only a good one may be", r.Status)
	}
	if (r.Overflow || r.Underflow) && r.Residual == 0 {
		return violation(p, "11.4.5.1", "O or U with a residual count of 0")
	}
	return t.judgeResidual(p)
}

func (c *Conn) complete(t *Task) {
	t.Done = true
	t.Result.In = t.in[:t.received]
	delete(c.tasks, t.ITT)
}

// judgeResidual compares the residual counts with the bytes that moved. A write
// that failed may leave any part of its data unasked for.
func (t *Task) judgeResidual(p *PDU) error {
	r := &t.Result
	expected, left := t.Command.expected(), 0
	if r.Underflow {
		left = int(r.Residual)
	}
	readLeft := left
	if t.Command.bidirectional() {
		readLeft = 0
		if r.ReadUnderflow {
			readLeft = int(r.ReadResidual)
		}
	} else if r.ReadOverflow || r.ReadUnderflow {
		return violation(p, "11.4.5.2", "a read residual of a command that is not bidirectional")
	}
	if left > expected {
		return violation(p, "11.4.5.1", "underflow of %d bytes of an expected length of %d", left, expected)
	}
	if t.Command.InLen > 0 && t.received != t.Command.InLen-readLeft {
		return violation(p, "11.4.5.1", "%d bytes of Data-In with a residual of %d, expected length is %d", t.received, readLeft, t.Command.InLen)
	}
	if len(t.Command.Out) > 0 && r.Status == StatusGood && t.asked < expected-left {
		return violation(p, "11.4.5.1", "GOOD although only %d bytes were asked for, residual %d, expected length %d", t.asked, left, expected)
	}
	return nil
}
