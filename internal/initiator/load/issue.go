package load

import "lunar/internal/initiator"

// claimTries bounds the search for an operation that no other one is in the way
// of; a connection that found none tries again in its next turn.
const claimTries = 8

// issue starts commands in the free slots, as far as the window reaches.
//
// It runs only while nothing of an earlier turn waits in the outbox. That bounds
// the outbox to what the live slots can put there, and keeps a slot's buffer
// from being filled anew while an earlier use of it is still to be sent.
func (c *connection) issue() error {
	for len(c.free) > 0 && c.engine.issuing && c.state.WindowOpen() && c.pace.due(c.engine.loop.Now()) {
		op, ok := c.choose()
		if !ok {
			c.tryAgain()
			return nil
		}
		i := c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
		if err := c.start(&c.slots[i], op); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the next operation, claimed when verifying.
func (c *connection) choose() (operation, bool) {
	l := c.engine.ledger
	if l == nil {
		return c.pattern.next(), true
	}
	if c.engine.readingBack {
		return c.engine.nextReadBack()
	}
	for range claimTries {
		if op := c.pattern.next(); l.claim(op) {
			return op, true
		}
	}
	return operation{}, false
}

// tryAgain makes sure of another turn: with nothing outstanding nothing would
// cause one.
func (c *connection) tryAgain() {
	if len(c.free) == len(c.slots) && !c.engine.readBackDone {
		c.engine.loop.Again(c)
	}
}

// start sends a command.
func (c *connection) start(s *slot, op operation) error {
	s.op, s.live = op, true
	c.engine.live++
	c.pace.took()
	s.itt = (s.itt + 1<<16) & (1<<31 - 1) // a new tag for each use of the slot
	s.bytes = op.blocks * c.engine.unit.BlockSize
	s.started = c.engine.loop.Now()
	s.moved, s.pdus = 0, 0
	c.owed += headerLength
	if !op.write {
		c.owed += s.bytes
		return c.startRead(s)
	}
	if c.engine.ledger != nil {
		s.generation = c.engine.ledger.fill(s.buffer[:s.bytes], op)
	}
	return c.startWrite(s)
}

func (c *connection) startRead(s *slot) error {
	h := c.command(s, initiator.FlagFinal|initiator.FlagRead, 0)
	if h == nil {
		return errOutboxFull
	}
	return c.seal(h, nil)
}

func (c *connection) startWrite(s *slot) error {
	p := &c.state.Params
	immediate := 0
	if p.ImmediateData {
		immediate = min(s.bytes, p.FirstBurstLength, p.TargetMaxRecv)
	}
	s.moved = immediate
	if !p.InitialR2T {
		s.moved = min(s.bytes, p.FirstBurstLength)
	}
	flags := byte(initiator.FlagWrite)
	if s.moved == immediate {
		flags |= initiator.FlagFinal
	}
	h := c.command(s, flags, immediate)
	if h == nil {
		return errOutboxFull
	}
	if err := c.seal(h, s.buffer[:immediate]); err != nil {
		return err
	}
	return c.burst(s, initiator.NoTag, immediate, s.moved)
}

// command writes a SCSI Command header and uses up its CmdSN.
func (c *connection) command(s *slot, flags byte, data int) []byte {
	h := c.header(initiator.OpSCSICommand, flags|initiator.AttrSimple, data)
	if h == nil {
		return nil
	}
	copy(h[initiator.AtLUN:], c.lun[:])
	put(h, initiator.AtITT, s.itt)
	put(h, initiator.AtTTT, uint32(s.bytes))
	put(h, initiator.AtCmdSN, c.state.CmdSN)
	c.state.CmdSN++
	putCDB(h[initiator.AtCDB:], s.op)
	return h
}

// putCDB writes READ(10) or WRITE(10), or their 16-byte forms where LBA or
// length need them.
func putCDB(cdb []byte, op operation) {
	opcode := byte(0x28)
	if op.write {
		opcode = 0x2a
	}
	if op.lba < 1<<32 && op.blocks < 1<<16 {
		cdb[0] = opcode
		put(cdb, 2, uint32(op.lba))
		cdb[7], cdb[8] = byte(op.blocks>>8), byte(op.blocks)
		return
	}
	cdb[0] = opcode | 0x80
	put(cdb, 2, uint32(op.lba>>32))
	put(cdb, 6, uint32(op.lba))
	put(cdb, 10, uint32(op.blocks))
}

// takeR2T checks an R2T against its command and sends what it asks for.
func (c *connection) takeR2T(p *initiator.PDU) error {
	s, err := c.slotOf(p)
	if err != nil {
		return err
	}
	from, n := int(p.U32(initiator.AtOffset)), int(p.U32(initiator.AtLength))
	if !s.op.write || p.U32(initiator.AtDataSN) != s.pdus || from != s.moved || n == 0 ||
		from+n > s.bytes || n > c.state.Params.MaxBurstLength {
		return wrong(p, "11.8", "R2TSN %d for bytes %d to %d, expected R2TSN %d from %d up to %d",
			p.U32(initiator.AtDataSN), from, from+n, s.pdus, s.moved, s.bytes)
	}
	s.pdus++
	s.moved = from + n
	return c.burst(s, p.TTT(), from, s.moved)
}

// burst sends bytes [from, to) as one sequence of Data-Out PDUs.
func (c *connection) burst(s *slot, ttt uint32, from, to int) error {
	for sn := uint32(0); from < to; sn++ {
		end := min(to, from+c.state.Params.TargetMaxRecv)
		flags := byte(0)
		if end == to {
			flags = initiator.FlagFinal
		}
		h := c.header(initiator.OpDataOut, flags, end-from)
		if h == nil {
			return errOutboxFull
		}
		if ttt != initiator.NoTag {
			copy(h[initiator.AtLUN:], c.lun[:])
		}
		put(h, initiator.AtITT, s.itt)
		put(h, initiator.AtTTT, ttt)
		put(h, initiator.AtDataSN, sn)
		put(h, initiator.AtOffset, uint32(from))
		if err := c.seal(h, s.buffer[from:end]); err != nil {
			return err
		}
		from = end
	}
	return nil
}
