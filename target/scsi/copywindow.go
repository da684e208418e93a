package scsi

// windowBytes is how much of a copy's source is kept from atomic writes at a time. It
// is as much as a copy has under way, so that what lies two windows back has been read
// and written, and more than any atomic write.
const windowBytes = MaxSegments * SegmentSize

// copyWindow is what a copy keeps atomic writes away from, so that it copies all of one
// or nothing, as READ reads: the part of its source that it is reading, and the part
// before, since an atomic write may lie on the border of both. Those who write wait for
// two windows, not for the copy.
type copyWindow struct {
	turns   [2]*atomicTurn // the older one first
	lu      *LogicalUnit   // that both are of
	move    *copyMove      // of the newer one
	number  int64          // of the newer one in its move
	waiting bool           // for its turn
}

// enterWindow reports whether the copy may read its next part; else it goes on when
// atomic writes have ended.
func (c *Command) enterWindow(m *copyMove) bool {
	w, number := &c.copying().window, c.copying().started/windowBytes
	if w.move == m && w.number == number {
		return !w.waiting
	}
	from, n := number*windowBytes, min(windowBytes, m.n-number*windowBytes)
	if _, descending := m.overlaps(); descending {
		from = m.n - from - n
	}
	if lu := m.source.Nexus.LU; lu != w.lu {
		w.release()
		w.lu = lu
	}
	w.releaseTurn(0)
	w.turns[0] = w.turns[1]
	w.turns[1] = &atomicTurn{byteRange: byteRange{m.from + from, n}, c: c, then: enteredWindow}
	w.move, w.number = m, number
	if w.waiting = !w.lu.atomics.enter(w.turns[1], w.turns[0]); w.waiting {
		c.running++
	}
	return !w.waiting
}

// enteredWindow is atomicTurn.then.
func enteredWindow(c *Command) {
	c.copying().window.waiting = false
	c.pump()
}

// endWait reports whether the copy waited for its turn; it does no longer.
func (w *copyWindow) endWait() bool {
	if !w.waiting || !w.lu.atomics.cancel(w.turns[1]) {
		return false
	}
	w.waiting = false
	return true
}

func (w *copyWindow) releaseTurn(i int) {
	if t := w.turns[i]; t != nil {
		w.turns[i] = nil
		w.lu.atomics.end(t)
	}
}

// release lets atomic writes go on.
func (w *copyWindow) release() {
	w.releaseTurn(0)
	w.releaseTurn(1)
}
