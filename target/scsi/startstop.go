package scsi

import "lunar/target/scsi/sense"

// Fields of START STOP UNIT (SBC-3 clause 5.27), byte 4.
const (
	startBit       = 0x01
	loadEjectBit   = 0x02
	noFlushBit     = 0x04
	powerCondition = 0xf0
)

// runStartStopUnit starts or stops the unit for all initiators, or loads or
// ejects its medium (SBC-3, START STOP UNIT). A unit whose medium cannot be
// removed has no power conditions; one whose medium can has no motor: power
// conditions change nothing there, and a stop only flushes. A stop comes before
// its flush, so that no write can slip in between; if the flush fails the unit
// is stopped all the same. With IMMED the status could be sent before the flush;
// it is not, so that an error still reaches the initiator.
func runStartStopUnit(c *Command) {
	lu, what := c.Nexus.LU, c.CDB[4]
	switch {
	case !lu.config.Removable && what&(powerCondition|loadEjectBit) != 0:
		c.Fail(sense.InvalidFieldInCDB(4, firstBit(what&(powerCondition|loadEjectBit))))
		return
	case what&powerCondition != 0:
		c.Good()
		return
	case what&startBit == 0 && restrictions(c.Nexus.restricted.Load())&restrictWrite != 0:
		c.FailStatus(ReservationConflict) // only a start is allowed (SBC-3 table 13)
		return
	case lu.config.Removable:
		if s := lu.loadOrEject(c.Nexus, what); s != nil {
			c.Fail(s)
			return
		}
	default:
		lu.update(func(s *State) { s.Stopped = what&startBit == 0 })
	}
	if what&startBit != 0 {
		lu.starts.Add(1)
	}
	if what&(startBit|noFlushBit) != 0 {
		c.Good()
		return
	}
	c.flushThen((*Command).Good)
}

// firstBit is the leftmost bit of b that is set.
func firstBit(b byte) int {
	bit := 7
	for b>>bit == 0 {
		bit--
	}
	return bit
}
