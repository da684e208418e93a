package scsi

// runStartStopUnit starts or stops the unit for all initiators (SBC-3, START
// STOP UNIT). The table refuses power conditions, of which there are none, and
// LOEJ, as the medium cannot be removed. A stop comes before its flush, so that
// no write can slip in between; if the flush fails the unit is stopped all the
// same. With IMMED the status could be sent before the flush; it is not, so
// that an error still reaches the initiator.
func runStartStopUnit(c *Command) {
	if c.Nexus.ReadOnly {
		c.Fail(WriteProtected) // the unit is shared with those who may change it
		return
	}
	start, noFlush := c.CDB[4]&0x01 != 0, c.CDB[4]&0x04 != 0
	if !start && bars(c.Nexus.barred.Load())&barWrite != 0 {
		c.FailStatus(ReservationConflict) // only a start is allowed (SBC-3 table 13)
		return
	}
	c.Nexus.LU.update(func(s *State) { s.Stopped = !start })
	if start || noFlush {
		c.Good()
		return
	}
	c.flushThen((*Command).Good)
}
