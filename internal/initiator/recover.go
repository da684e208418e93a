package initiator

import (
	"slices"
	"time"
)

// Types of SNACK (RFC 7143 section 11.16.1).
const (
	SNACKData   = 0
	SNACKStatus = 1
	SNACKAck    = 2
	SNACKRData  = 3
)

// SNACK sends a SNACK request; a run of 0 is all from beg on.
func (c *Conn) SNACK(kind byte, itt, tag, beg, run uint32) error {
	p := NewPDU(OpSNACK, FlagFinal|kind, nil)
	p.SetU32(AtITT, itt)
	p.SetU32(AtTTT, tag)
	p.SetU32(AtExpStatSN, c.ExpStatSN)
	p.SetU32(AtOffset, beg)
	p.SetU32(AtLength, run)
	return c.Send(p)
}

// stepRecovering is Step at ErrorRecoveryLevel 1: PDUs that Lose takes are asked for
// again when what follows them shows that they are missing, and what follows them
// waits for them.
func (c *Conn) stepRecovering(timeout time.Duration) (*PDU, error) {
	p, err := c.readWithin(timeout)
	if err != nil {
		return p, err
	}
	if c.Lose != nil && c.Lose(p) {
		c.Lost++
		return p, nil
	}
	if c.prodded && c.repeated(p) {
		return p, nil
	}
	c.ahead = append(c.ahead, p)
	if missing, err := c.askFor(p); missing || err != nil {
		return p, err
	}
	return p, c.deliver()
}

// deliver takes what has waited, as far as nothing before it is missing.
func (c *Conn) deliver() error {
	for i := 0; i < len(c.ahead); {
		p := c.ahead[i]
		if c.early(p) {
			i++
			continue
		}
		c.ahead = append(c.ahead[:i:i], c.ahead[i+1:]...)
		if err := c.Judge(p); err != nil {
			return err
		}
		if err := c.take(p); err != nil {
			return err
		}
		i = 0
	}
	return nil
}

// early reports whether something before the PDU is missing.
func (c *Conn) early(p *PDU) bool {
	status, data := c.gaps(p)
	return status > 0 || data > 0
}

// gaps are how many statuses, and Data-In or R2T PDUs of the same task, are missing
// before the PDU.
func (c *Conn) gaps(p *PDU) (status, data uint32) {
	if (p.Opcode() != OpDataIn || p.Has(FlagStatus)) && before(c.ExpStatSN, p.StatSN()) {
		status = p.StatSN() - c.ExpStatSN
	}
	switch t := c.tasks[p.ITT()]; p.Opcode() {
	case OpDataIn, OpR2T, OpSCSIResponse:
		if t != nil && before(t.dataPDUs, p.U32(AtDataSN)) {
			data = p.U32(AtDataSN) - t.dataPDUs
		}
	}
	return status, data
}

// askFor sends the SNACKs for what is missing before the PDU, once for each number.
func (c *Conn) askFor(p *PDU) (missing bool, err error) {
	status, data := c.gaps(p)
	if status > 0 && before(c.askedStatus, p.StatSN()) {
		from := c.ExpStatSN
		if before(from, c.askedStatus) {
			from = c.askedStatus
		}
		c.askedStatus = p.StatSN()
		err = c.SNACK(SNACKStatus, NoTag, NoTag, from, p.StatSN()-from)
	}
	if t := c.tasks[p.ITT()]; data > 0 && err == nil && before(t.askedData, p.U32(AtDataSN)) {
		from := max(t.dataPDUs, t.askedData)
		t.askedData = p.U32(AtDataSN)
		err = c.SNACK(SNACKData, t.ITT, NoTag, from, t.askedData-from)
	}
	return status > 0 || data > 0, err
}

// repeated reports whether a PDU has come before: Prod may ask for what is on its way.
func (c *Conn) repeated(p *PDU) bool {
	t := c.tasks[p.ITT()]
	switch p.Opcode() {
	case OpDataIn, OpR2T:
		return t == nil || before(p.U32(AtDataSN), t.dataPDUs) || c.waits(p)
	}
	return advancesStatSN(p) && before(p.StatSN(), c.ExpStatSN) || c.waits(p)
}

// waits reports whether the same PDU is among those that came early.
func (c *Conn) waits(p *PDU) bool {
	return slices.ContainsFunc(c.ahead, func(o *PDU) bool {
		if advancesStatSN(p) {
			return advancesStatSN(o) && o.StatSN() == p.StatSN()
		}
		return o.Opcode() == p.Opcode() && o.ITT() == p.ITT() && o.U32(AtDataSN) == p.U32(AtDataSN) && o.ITT() != NoTag
	})
}

// Prod asks for all that may be missing, after a silence.
func (c *Conn) Prod() error {
	c.prodded = true
	for _, t := range c.tasks {
		if err := c.SNACK(SNACKData, t.ITT, NoTag, t.dataPDUs, 0); err != nil {
			return err
		}
	}
	return c.SNACK(SNACKStatus, NoTag, NoTag, c.ExpStatSN, 0)
}
