package scsi

import "math"

// synchronizeCache runs SYNCHRONIZE CACHE (SBC-3 clause 5.29). No number of
// blocks means all to the end. IMMED changes nothing: an initiator that does not
// want to wait loses nothing when the status tells it more than it asked for, and
// a failure needs no deferred sense.
func synchronizeCache(c *Command) {
	if s := c.address(math.MaxUint64); s != nil {
		c.Fail(s)
		return
	}
	lu := c.Nexus.LU
	if c.count == 0 {
		c.count = lu.state.Load().Blocks - c.lba
	}
	if c.lba == 0 && c.count == lu.state.Load().Blocks {
		c.flushThen((*Command).Good)
		return
	}
	c.flushRange(lu.byteOff(c.lba), int64(c.count)<<lu.blockShift, (*Command).Good)
}
