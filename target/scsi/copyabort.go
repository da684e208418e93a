package scsi

import "encoding/binary"

// copyOperationAbort runs COPY OPERATION ABORT (SPC-4 clause 6.3): it ends the
// initiator's copy with a list identifier, and is answered when nothing more is
// copied. What was copied stays.
func copyOperationAbort(c *Command) {
	r := c.copyRecord(binary.BigEndian.Uint32(c.CDB[2:]))
	if r == nil {
		c.Fail(InvalidFieldInCDB(2, 7))
		return
	}
	r.aborted.Store(true)
	c.running++
	r.whenEnded(func() { c.conclude((*Command).Good) })
}

// Copies reports that the command copies data within the server.
func (c *Command) Copies() bool { return c.copy != nil }

// whenEnded calls f when the copy has ended, on any goroutine.
func (r *copyRecord) whenEnded(f func()) {
	r.mu.Lock()
	if r.status == copyInProgress {
		r.ended = append(r.ended, f)
		f = nil
	}
	r.mu.Unlock()
	if f != nil {
		f()
	}
}

// obey ends the copy if it has been aborted (SPC-4 clause 5.17.4.7).
func (c *Command) obey(r *copyRecord, segment uint16) bool {
	if !r.aborted.Load() {
		return false
	}
	s := copyAborted(ASCCommandsClearedByDevice, segment)
	r.fail(&s, segment)
	c.Fail(c.sense(s))
	return true
}
