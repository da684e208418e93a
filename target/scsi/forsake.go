package scsi

// Forsake lets go of what a command keeps others from that is not to be used any more,
// as it has panicked: its places in the task set, among atomic writes and in the extent
// guard, its list identifier. Extents that the lane may still be writing to are kept
// until it has ended that; nothing else follows then. Its buffers stay as they are.
func (c *Command) Forsake() {
	c.ending, c.aborted, c.pumping = true, true, true
	if c.place != nil {
		c.leave()
	}
	if c.atomic != nil {
		c.Nexus.LU.atomics.leave(c.atomic)
		c.atomic = nil
	}
	busy := false
	for i := range c.seg {
		s := &c.seg[i]
		s.hold.keep = false
		if s.state == running {
			busy = true
		} else {
			s.hold.release()
		}
	}
	if c.sanitizes != nil {
		c.sanitizes.abandoned(c.Nexus.LU)
	}
	if c.copy != nil {
		c.copy.window.leave()
	}
	switch {
	case c.copy == nil:
	case busy:
		c.copy.record.end(copyTerminated) // but who preempts still waits for its extents
	default:
		c.copy.ended(c)
	}
}
