package scsi

import "lunar/backstore"

// read runs READ: up to MaxSegments reads under way, sent in order as they end.
func read(c *Command) {
	if s := c.transfer(); s != nil {
		c.Fail(s)
		return
	}
	if c.limit = c.dataIn(); c.limit == 0 {
		c.Good()
		return
	}
	c.readWhole(startRead)
}

// readWhole goes on with then when no atomic write is under way of blocks that
// the command is about to read, and keeps those that come away until it has
// ended. A command that reads while there is none pays one look for it.
func (c *Command) readWhole(then func(*Command)) {
	if !c.Nexus.LU.atomics.pending.Load() {
		c.reads = true
		then(c)
		return
	}
	c.waitForTurn(false, func(c *Command) { c.reads = true; then(c) })
}

func startRead(c *Command) {
	if lu := c.Nexus.LU; c.wantsMedium() && lu.traits.Load().info.VolatileCache {
		c.flushRange(lu.byteOff(c.lba), int64(c.count<<lu.blockShift), readFlushed)
		return
	}
	c.run(readStep)
}

// readFlushed follows the flush.
func readFlushed(c *Command) {
	c.close()
	c.run(readStep)
}

func readStep(c *Command) {
	for c.sendRead() && c.room() {
		if c.borrow() {
			continue
		}
		s := c.open(SegmentSize, 1)
		if s == nil {
			return
		}
		// An initiator may expect less than whole blocks; the medium has
		// nothing less.
		if c.shield.active {
			s.startShielded(backstore.Read)
		} else {
			s.start(backstore.Read, s.ref.Bytes())
		}
	}
}

// borrow makes the next segment of what the lane has in memory and lends: it
// needs no buffer and no copy. What a turn may do without waiting bounds it, as
// it does operations. It is sent at once: who held it while an earlier segment waits
// for a write could be what that write waits for.
func (c *Command) borrow() bool {
	lender := backstore.LenderOf(c.Lane)
	if lender == nil || c.starved || c.inline >= maxInline || c.head != c.tail {
		return false
	}
	lu, n := c.Nexus.LU, min(SegmentSize, c.limit-c.next)
	if !c.Port.Affords(c, int(n)) {
		return false // Alloc waits, if there is no other memory either
	}
	ref := lender.Lend(lu.byteOff(c.lba)+int64(c.next), int(lu.wholeBlocks(n)))
	if ref == nil {
		return false
	}
	c.Port.Charge(c, ref)
	s := c.at(c.tail)
	s.ref, s.off, s.n = ref, c.next, min(n, uint32(len(ref.Bytes())))
	s.state, s.op.Err = done, nil
	c.tail++
	c.next += s.n
	c.inline += int64(s.n)
	return true
}

// sendRead sends what was read, as far as it is contiguous with what was sent
// before. It returns false when the command is to end.
func (c *Command) sendRead() bool {
	for c.head != c.tail {
		s := c.at(c.head)
		switch {
		case s.state != done:
			return true
		case s.op.Err != nil:
			c.failOp(s)
			return false
		case c.shield.active && !s.joinTuples():
			return false
		case s.off+s.n == c.limit:
			c.final, c.Status, c.ending = s, Good, true
			return false
		}
		ref := s.ref
		s.ref = nil
		c.Port.SendDataIn(c, s.off, ref, ref.Bytes()[:s.n], false)
		c.close()
	}
	return true
}
