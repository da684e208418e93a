package scsi

// Discard releases what a command that has panicked keeps from others: its places in
// the task set, among atomic writes and in the extent guard, and its list identifier.
// Extents to which the lane may still be writing are released when that has ended. The
// buffers stay as they are, and the command must not be used any more.
func (c *Command) Discard() {
	c.ending, c.aborted, c.pumping = true, true, true
	if c.place != nil {
		c.exitTaskSet()
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
		c.feature.discarded(c, busy)
	}
}
