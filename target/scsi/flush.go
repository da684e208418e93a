package scsi

import "lunar/backstore"

// flushThen makes all acknowledged writes stable and goes on with then. None
// of the command's operations may be running.
func (c *Command) flushThen(then func(*Command)) {
	c.parsed = then
	c.carrier().state = idle
	c.run(flushStep)
}

func flushStep(c *Command) {
	s := c.carrier()
	switch {
	case s.state == idle:
		s.op.Off, s.op.Len, s.op.Data = 0, 0, nil
		s.launch(backstore.Flush)
	case s.state == done && c.pieceDone(s):
		c.parsed(c)
	}
}
