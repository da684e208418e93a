package scsi

import "lunar/backstore"

// flushThen makes all acknowledged writes stable and goes on with then. None
// of the command's operations may be running.
func (c *Command) flushThen(then func(*Command)) { c.flushRange(0, 0, then) }

// flushRange is flushThen for n bytes at off; 0 is everything.
func (c *Command) flushRange(off, n int64, then func(*Command)) {
	c.parsed = then
	s := c.carrier()
	s.state, s.op.Off, s.op.Len = idle, off, n
	c.run(flushStep)
}

// stored ends a command whose writes have ended. If WCE was one when they began
// and is no more, they are made stable: the flush of the MODE SELECT may have
// come too early for them.
func (c *Command) stored() {
	if c.fua || c.Nexus.LU.state.Load().WriteCache {
		c.Good()
		return
	}
	c.flushThen((*Command).Good)
}

func flushStep(c *Command) {
	s := c.carrier()
	switch {
	case s.state == idle:
		s.op.Data = nil
		c.flush = c.Nexus.LU.stability.flushing()
		s.launch(backstore.Flush)
	case s.state == done && c.pieceDone(s):
		if s.op.Len == 0 {
			c.Nexus.LU.stability.flushed(c.flush)
		}
		c.parsed(c)
	}
}
