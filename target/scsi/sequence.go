package scsi

import "lunar/backstore"

// carrier returns the segment of a command that makes one operation after the
// other. It needs no buffer of its own.
func (c *Command) carrier() *segment {
	if c.head == c.tail {
		c.tail++
	}
	return c.at(c.head)
}

// nextPiece starts an operation of work.kind, or with room a write of it, on
// the next blocks of the work's extent, at most most bytes of it.
func (c *Command) nextPiece(s *segment, most uint64, room []byte) {
	w, lu := &c.work, c.Nexus.LU
	n := min(w.left, most>>lu.blockShift)
	s.op.Off, s.op.Len, s.op.Data = lu.byteOff(w.at), int64(n<<lu.blockShift), nil
	w.at += n
	w.left -= n
	kind := w.kind
	if room != nil {
		kind, s.op.Data = backstore.Write, room[:s.op.Len]
	}
	s.launch(kind)
}

// pieceDone reports whether the next piece may start; it has failed the
// command if the last one failed.
func (c *Command) pieceDone(s *segment) bool {
	if s.state == done && s.op.Err != nil {
		c.failOp(s)
		return false
	}
	s.state = idle
	return true
}

// finishPieces ends a command that released or zeroed blocks, after a flush if
// nothing may stay volatile: only writes carry FUA.
func (c *Command) finishPieces() {
	if !c.fua {
		c.stored()
		return
	}
	c.flushThen((*Command).Good)
}
