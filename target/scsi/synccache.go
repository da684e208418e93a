package scsi

import "math"

// synchronizeCache runs SYNCHRONIZE CACHE (SBC-3 clause 5.29). The whole medium
// is flushed whatever the range, and IMMED changes nothing: an initiator that
// does not want to wait loses nothing when the status tells it more than it
// asked for, and a failure needs no deferred sense.
func synchronizeCache(c *Command) {
	if s := c.address(math.MaxUint64); s != nil {
		c.Fail(s)
		return
	}
	c.flushThen((*Command).Good)
}

// prefetch runs PRE-FETCH (SBC-3 clause 5.7). GOOD rather than CONDITION MET
// says that the blocks did not all go into a cache.
func prefetch(c *Command) {
	if s := c.address(math.MaxUint64); s != nil {
		c.Fail(s)
		return
	}
	c.Good()
}
