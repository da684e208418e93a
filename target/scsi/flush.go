package scsi

import "lunar/backstore"

// flushThen makes all acknowledged writes stable and goes on with then; a
// store that cannot have any to flush is not asked.
func (c *Command) flushThen(then func(*Command)) {
	if c.Nexus.LU.info.ReadOnly {
		then(c)
		return
	}
	c.parsed = then
	c.run(flushStep)
}

func flushStep(c *Command) {
	s := c.at(0)
	switch {
	case s.state == idle:
		s.start(backstore.Flush, 0, nil)
	case s.state != done:
	case s.op.Err != nil:
		c.failOp(s)
	default:
		s.release()
		c.parsed(c)
	}
}
