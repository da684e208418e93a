package scsi

// runStartStopUnit starts or stops the unit for all initiators (SBC-3 clause
// 5.25). The table refuses power conditions, of which there are none, and
// LOEJ, as the medium cannot be removed. With IMMED the status could be sent
// before the cache is flushed; it is not, so that an error still reaches the
// initiator.
func runStartStopUnit(c *Command) {
	start, noFlush := c.CDB[4]&0x01 != 0, c.CDB[4]&0x04 != 0
	if start || noFlush {
		c.endStopped(!start)
		return
	}
	c.flushThen(func(c *Command) { c.endStopped(true) })
}

func (c *Command) endStopped(stopped bool) {
	c.Nexus.LU.update(func(s *State) { s.Stopped = stopped })
	c.Good()
}
