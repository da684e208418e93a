package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// extendedCopyLID1 runs EXTENDED COPY(LID1) (SPC-4 clause 6.4).
func extendedCopyLID1(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	list, s := thirdparty.ParseLID1(c.List())
	c.extendedCopy(&list, s)
}

// extendedCopyLID4 runs EXTENDED COPY(LID4) (SPC-4 clause 6.5).
func extendedCopyLID4(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	list, s := thirdparty.ParseLID4(c.List())
	c.extendedCopy(&list, s)
}

// extendedCopy checks the whole list and then copies: what is wrong with the
// list itself is found before anything is copied.
func (c *Command) extendedCopy(list *thirdparty.List, s *sense.Data) {
	if s != nil {
		c.Fail(s)
		return
	}
	segments, s := list.Segments()
	if s != nil {
		c.Fail(s)
		return
	}
	cscds, s := c.findCSCDs(list)
	if s != nil {
		c.Fail(s)
		return
	}
	record, s := c.beginRecord(list.ID, list.Usage)
	if s != nil {
		c.Fail(s)
		return
	}
	moves, s := copyMoves(segments, cscds)
	if s != nil {
		record.Fail(s, uint16(s.Info))
		record.End(thirdparty.Failed)
		c.Fail(s)
		return
	}
	if !list.Immediate {
		c.runCopy(moves, record)
		return
	}
	// With IMMED the status tells that the copy has begun; RECEIVE COPY
	// STATUS(LID4) tells the rest.
	record.Describe(thirdparty.Description{Background: true})
	if !c.Port.Background(c, func(b *Command) { b.runCopy(moves, record) }) {
		record.End(thirdparty.Failed)
		c.Fail(sense.InsufficientResources)
		return
	}
	c.Good()
}

// copyMoves holds the segments against the logical units.
func copyMoves(segments []thirdparty.Segment, cscds []CSCD) ([]copyMove, *sense.Data) {
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

func copyMoveOf(s *thirdparty.Segment, cscds []CSCD) (m copyMove, asc sense.ASC, ok bool) {
	if int(s.Source) >= len(cscds) || int(s.Dest) >= len(cscds) {
		return m, sense.ASCUnreachableCopyTarget, false
	}
	source, dest := &cscds[s.Source], &cscds[s.Dest]
	if source.Nexus == nil || dest.Nexus == nil {
		return m, sense.ASCCopyTargetNotReachable, false
	}
	there, here := source.Nexus.LU.medium(), dest.Nexus.LU.medium()
	n := s.Length(there.Shift, here.Shift)
	from, inSource := there.Within(s.From, s.SkipFrom, n)
	to, inDest := here.Within(s.To, s.SkipTo, n)
	switch {
	case !source.mayRead() || !dest.mayWrite():
		return m, sense.ASCThirdPartyDeviceFailure, false
	case !inSource || !inDest || n > thirdparty.MaxBytes:
		return m, sense.ASCNoAdditionalSense, false
	case !there.IsWhole(from, n) || !here.IsWhole(to, n):
		return m, sense.ASCInexactSegment, false
	}
	return copyMove{source: source, dest: dest, from: int64(from), to: int64(to), n: int64(n)}, 0, true
}

// medium is the logical unit as descriptors of copies speak of it.
func (lu *LogicalUnit) medium() thirdparty.Medium {
	return thirdparty.Medium{Blocks: lu.state.Load().Blocks, Shift: lu.blockShift}
}

// beginRecord makes a record for a copy that the command asks for.
func (c *Command) beginRecord(id uint32, usage byte) (*thirdparty.Record, *sense.Data) {
	n, lu := c.Nexus, c.Nexus.LU
	asker := thirdparty.Asker{By: n.asker(), Holder: n.holder()}
	return lu.copies.Begin(asker, id, usage, c.CDB[1]&0x1f, lu.config.Refusals)
}

// copyRecord returns the record of one of the initiator's copies, or nil.
func (c *Command) copyRecord(id uint32) *thirdparty.Record {
	return c.Nexus.LU.copies.Find(c.Nexus.asker(), id)
}

// receiveAllocation is ALLOCATION LENGTH of the RECEIVE COPY commands.
func receiveAllocation(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[10:]) }

// receiveCopy returns the Run of a command that tells of the copy with the list
// identifier that id finds in the CDB.
func receiveCopy(id func(*CDB) uint32, data func(*thirdparty.Record) []byte) func(*Command) {
	return func(c *Command) {
		r := c.copyRecord(id(&c.CDB))
		if r == nil {
			c.Fail(sense.InvalidFieldInCDB(2, 7))
			return
		}
		c.SendParameter(data(r), receiveAllocation(&c.CDB))
	}
}

func listIDLID1(cdb *CDB) uint32 { return uint32(cdb[2]) }

func listIDLID4(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[2:]) }

// receiveCopyOperatingParameters runs RECEIVE COPY OPERATING PARAMETERS (SPC-4
// clause 6.16).
func receiveCopyOperatingParameters(c *Command) {
	c.SendParameter(thirdparty.OperatingParameters(c.Nexus.LU.blockShift), receiveAllocation(&c.CDB))
}

// copyOperationAbort runs COPY OPERATION ABORT (SPC-4 clause 6.3): it ends the
// initiator's copy with a list identifier, and is answered when nothing more is
// copied. What was copied stays.
func copyOperationAbort(c *Command) {
	r := c.copyRecord(binary.BigEndian.Uint32(c.CDB[2:]))
	if r == nil {
		c.Fail(sense.InvalidFieldInCDB(2, 7))
		return
	}
	r.Abort()
	c.running++
	r.WhenEnded(func() { c.conclude((*Command).Good) })
}
