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
	busy := false
	for i := range c.seg {
		s := &c.seg[i]
		s.lock.keep = false
		if s.state == running {
			busy = true
		} else {
			s.lock.release()
		}
	}
	if c.feature != nil {
		c.feature.abandoned(c, busy)
	}
}
