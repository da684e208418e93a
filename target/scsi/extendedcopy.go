package scsi

// extendedCopyLID1 runs EXTENDED COPY(LID1) (SPC-4 clause 6.4).
func extendedCopyLID1(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	list, s := copyListLID1(c.List())
	c.extendedCopy(&list, s)
}

// extendedCopyLID4 runs EXTENDED COPY(LID4) (SPC-4 clause 6.5).
func extendedCopyLID4(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	list, s := copyListLID4(c.List())
	c.extendedCopy(&list, s)
}

// extendedCopy checks the whole list and then copies: what is wrong with the
// list itself is found before anything is copied.
func (c *Command) extendedCopy(list *copyList, s *Sense) {
	if s != nil {
		c.Fail(s)
		return
	}
	segments, s := list.parseSegments()
	if s != nil {
		c.Fail(s)
		return
	}
	cscds, s := c.findCSCDs(list)
	if s != nil {
		c.Fail(s)
		return
	}
	record, s := c.Nexus.LU.copies.begin(c, list.id, list.usage)
	if s != nil {
		c.Fail(s)
		return
	}
	moves, s := copyMoves(segments, cscds)
	if s != nil {
		record.fail(s, uint16(s.Info))
		record.end(copyFailed)
		c.Fail(s)
		return
	}
	if !list.immediate {
		c.runCopy(moves, record)
		return
	}
	// With IMMED the status tells that the copy has begun; RECEIVE COPY
	// STATUS(LID4) tells the rest.
	record.describe(func(r *copyRecord) { r.background = true })
	if !c.Port.Background(c, func(b *Command) { b.runCopy(moves, record) }) {
		record.end(copyFailed)
		c.Fail(InsufficientResources)
		return
	}
	c.Good()
}

// copyMoves holds the segments against the logical units.
func copyMoves(segments []copySegment, cscds []CSCD) ([]copyMove, *Sense) {
	var moves []copyMove
	for i := range segments {
		m, asc, ok := copyMoveOf(&segments[i], cscds)
		if !ok {
			s := copyAborted(asc, uint16(i))
			return nil, &s
		}
		m.segment = uint16(i)
		if m.n > 0 {
			moves = append(moves, m)
		}
	}
	return moves, nil
}

func copyMoveOf(s *copySegment, cscds []CSCD) (m copyMove, asc ASC, ok bool) {
	if int(s.source) >= len(cscds) || int(s.dest) >= len(cscds) {
		return m, ASCUnreachableCopyTarget, false
	}
	source, dest := &cscds[s.source], &cscds[s.dest]
	if source.Nexus == nil || dest.Nexus == nil {
		return m, ASCCopyTargetNotReachable, false
	}
	n := s.length(source.Nexus.LU, dest.Nexus.LU)
	from, inSource := source.Nexus.LU.within(s.from, s.skipFrom, n)
	to, inDest := dest.Nexus.LU.within(s.to, s.skipTo, n)
	switch {
	case !source.mayRead() || !dest.mayWrite():
		return m, ASCThirdPartyDeviceFailure, false
	case !inSource || !inDest || n > maxCopyBytes:
		return m, ASCNoAdditionalSense, false
	case !source.Nexus.LU.isWhole(from, n) || !dest.Nexus.LU.isWhole(to, n):
		return m, ASCInexactSegment, false
	}
	return copyMove{source: source, dest: dest, from: int64(from), to: int64(to), n: int64(n)}, 0, true
}

// within returns the byte offset of an extent of n bytes, skip bytes behind
// lba, and whether it lies on the medium.
func (lu *LogicalUnit) within(lba, skip, n uint64) (off uint64, ok bool) {
	blocks := lu.state.Load().Blocks
	if lba > blocks {
		return 0, false
	}
	size := blocks << lu.blockShift
	off = lba<<lu.blockShift + skip
	return off, off <= size && n <= size-off
}

// isWhole reports whether the extent is of whole logical blocks.
func (lu *LogicalUnit) isWhole(off, n uint64) bool {
	return (off|n)&(uint64(lu.config.BlockSize)-1) == 0
}
