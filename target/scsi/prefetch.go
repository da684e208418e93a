package scsi

import (
	"math"

	"lunar/backstore"
)

// prefetch runs PRE-FETCH (SBC-3 clause 5.7): behind a block cache the blocks
// are read into it. CONDITION MET says that all of them are there, GOOD that
// they are not, because there is no cache or it does not take them. IMMED
// changes nothing: the status that comes later says more.
func prefetch(c *Command) {
	if s := c.address(math.MaxUint64); s != nil {
		c.Fail(s)
		return
	}
	lu := c.Nexus.LU
	if backstore.LenderOf(c.Lane) == nil || c.count > uint64(lu.traits.Load().limits.MaxPrefetch) {
		c.Good()
		return
	}
	if c.count == 0 {
		c.count = min(lu.state.Load().Blocks-c.lba, uint64(lu.traits.Load().limits.MaxPrefetch))
	}
	c.work.at, c.work.left = c.lba, c.count
	n := uint32(min(c.count<<lu.blockShift, SegmentSize))
	c.fetch(0, n, func(c *Command) { c.run(prefetchStep) })
}

// prefetchStep reads one piece after the other into the workspace, and looks
// after each whether the cache has it.
func prefetchStep(c *Command) {
	s, lu := c.carrier(), c.Nexus.LU
	for s.state != running {
		if s.state == done && s.op.Err != nil {
			c.failOp(s)
			return
		}
		if s.state == done && !c.isCached(s.op.Off, s.op.Len) {
			c.Good()
			return
		}
		if c.work.left == 0 {
			c.FailStatus(ConditionMet)
			return
		}
		room := c.workspace()
		n := min(c.work.left, uint64(len(room))>>lu.blockShift)
		s.op.Off, s.op.Len, s.op.Data = lu.byteOff(c.work.at), int64(n<<lu.blockShift), room[:n<<lu.blockShift]
		c.work.at += n
		c.work.left -= n
		s.launch(backstore.Read)
	}
}

// isCached reports whether the lane has all of the extent in memory.
func (c *Command) isCached(off, n int64) bool {
	lender := backstore.LenderOf(c.Lane)
	for n > 0 && lender != nil {
		ref := lender.Lend(off, int(n))
		if ref == nil {
			return false
		}
		part := int64(len(ref.Bytes()))
		ref.Release()
		off, n = off+part, n-part
	}
	return lender != nil
}
