package scsi

import (
	"encoding/binary"
	"time"

	"lunar/backstore"
)

// Offloaded data transfer: POPULATE TOKEN gives the initiator a token for
// blocks, WRITE USING TOKEN writes what the token stands for, here or to any
// other logical unit that the initiator has access to, and RECEIVE ROD TOKEN
// INFORMATION tells what became of either.
//
// A token is a point in time copy without a copy: every change of its blocks
// revokes it before the change begins, and what was read by it counts only if
// it was not revoked until the read had ended.

// populateToken runs POPULATE TOKEN (SBC-3 clause 5.12). IMMED changes nothing:
// it takes no longer than the writes that are under way.
func populateToken(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	ranges, s := c.rangesOf(populateHeader, 14)
	if s != nil {
		c.Fail(s)
		return
	}
	list := c.List()
	timeout, s := tokenTimeout(list)
	switch {
	case s != nil:
	case list[2]&rodTypeValid != 0 && binary.BigEndian.Uint32(list[8:]) != rodChangeVulnerable:
		s = InvalidFieldInList(8, NoBit)
	case len(ranges) == 0:
		s = InvalidFieldInList(populateHeader, NoBit)
	}
	if s != nil {
		c.Fail(s)
		return
	}
	lu := c.Nexus.LU
	record, s := lu.copies.begin(c, c.listIdentifier(), 0)
	if s != nil {
		c.Fail(s)
		return
	}
	token := newToken(c.Nexus, ranges, timeout)
	c.copy = &copyOperation{record: record}
	if !lu.tokens.add(token, time.Now(), lu.config.Refusals) {
		c.Fail(InsufficientResourcesForToken)
		return
	}
	record.describe(func(r *copyRecord) { r.shift = lu.blockShift })
	c.copy.fresh = token
	c.run(settleStep)
}

// settleStep lets what was changing the token's blocks when it was made end,
// range by range: later changes see the token.
func settleStep(c *Command) {
	o, s := c.copy, c.carrier()
	for s.state != running {
		s.state = idle
		if o.index == len(o.fresh.ranges) {
			o.record.setToken(o.fresh)
			c.Good()
			return
		}
		r := o.fresh.ranges[o.index]
		o.index++
		s.hold.cover(exclusive, r.off, r.n)
		s.op.Off, s.op.Len, s.op.Data = r.off, 0, nil
		s.launch(backstore.Read)
	}
}

// listIdentifier is LIST IDENTIFIER of a command with service action 10h or 11h.
func (c *Command) listIdentifier() uint32 { return binary.BigEndian.Uint32(c.CDB[6:]) }

// writeUsingToken runs WRITE USING TOKEN (SBC-3 clause 5.59).
func writeUsingToken(c *Command) {
	if c.Length == 0 {
		c.Good()
		return
	}
	ranges, s := c.rangesOf(writeTokenHeader, 534)
	if s != nil {
		c.Fail(s)
		return
	}
	lu, list := c.Nexus.LU, c.List()
	data := list[16:][:tokenLength]
	immediate, remove := list[2]&rodImmediate != 0, list[2]&rodDelete != 0
	w := tokenWrite{dest: &CSCD{Nexus: c.Nexus, Lane: c.Lane}, ranges: ranges}
	if s = w.find(c, data, binary.BigEndian.Uint64(list[8:])); s != nil {
		c.Fail(s)
		return
	}
	record, s := lu.copies.begin(c, c.listIdentifier(), 0)
	if s == nil && w.token != nil {
		if s = w.source.Nexus.LU.tokens.use(w.token, time.Now()); s != nil {
			record.end(copyFailed)
		}
	}
	if s != nil {
		c.Fail(s)
		return
	}
	record.describe(func(r *copyRecord) { r.shift, r.partial, r.background = lu.blockShift, w.partial, immediate })
	o := &copyOperation{moves: w.moves, record: record, token: w.token, source: w.source, remove: remove}
	if !immediate {
		c.resumeCopy(o)
		return
	}
	if !c.Port.Background(c, func(b *Command) { b.resumeCopy(o) }) {
		o.letGo()
		record.end(copyFailed)
		c.Fail(InsufficientResources)
		return
	}
	c.Good()
}

// tokenWrite is what WRITE USING TOKEN is to do.
type tokenWrite struct {
	dest    *CSCD
	source  *CSCD       // nil: zeroes
	token   *rodToken   // nil: zeroes
	ranges  []byteRange // of dest
	moves   []copyMove
	partial bool // the token stands for less than ranges ask for
}

// find finds what the token stands for, from skip blocks of the destination on,
// and makes the moves of it.
func (w *tokenWrite) find(c *Command, data []byte, skip uint64) *Sense {
	be := binary.BigEndian
	switch kind := be.Uint32(data); {
	case be.Uint16(data[6:]) != tokenSpan:
		return InvalidTokenLength
	case kind == rodZero:
		for i, r := range w.ranges {
			w.moves = append(w.moves, copyMove{dest: w.dest, to: r.off, n: r.n, segment: uint16(i)})
		}
		return nil
	case kind != rodChangeVulnerable:
		return UnsupportedTokenType
	}
	unit, ok := c.Port.Reach(c, func(n *Nexus) bool {
		w.token = n.LU.tokens.find(data) // of this unit: the one before may have matched, and be closing
		return w.token != nil
	})
	switch {
	case w.token == nil:
		return TokenUnknown
	case !ok || !unit.mayRead():
		return InvalidTokenOperation
	}
	w.source = &unit
	off := skip << w.dest.Nexus.LU.blockShift
	if skip >= 1<<48 || off >= uint64(w.token.size) {
		return InvalidFieldInList(8, NoBit)
	}
	return w.pair(int64(off))
}

// pair cuts the token's ranges from offset skip on and the destination's into
// pieces of the same length.
func (w *tokenWrite) pair(skip int64) *Sense {
	dest, from, used := w.dest.Nexus.LU, 0, skip
	left := w.token.size - skip
	left &^= int64(dest.config.BlockSize) - 1 // whole blocks
	for i, to := range w.ranges {
		if dest == w.source.Nexus.LU && w.token.overlaps(to.off, to.n) {
			return InvalidTokenOperation // it would revoke its own token
		}
		for to.n > 0 && left > 0 {
			r := w.token.ranges[from]
			if used >= r.n {
				used, from = used-r.n, from+1
				continue
			}
			n := min(to.n, r.n-used, left)
			if !dest.isWhole(uint64(to.off), uint64(n)) || !w.source.Nexus.LU.isWhole(uint64(r.off+used), uint64(n)) {
				return InvalidTokenOperation // pieces of blocks
			}
			w.moves = append(w.moves, copyMove{source: w.source, dest: w.dest, from: r.off + used, to: to.off, n: n, segment: uint16(i)})
			to.off, to.n, used, left = to.off+n, to.n-n, used+n, left-n
		}
		w.partial = w.partial || to.n > 0
	}
	return nil
}

// receiveRODTokenInformation runs RECEIVE ROD TOKEN INFORMATION (SPC-4 clause
// 6.24): the status of a command with the list identifier, and the token that
// it made.
func receiveRODTokenInformation(c *Command) {
	r := c.copyRecord(binary.BigEndian.Uint32(c.CDB[2:]))
	if r == nil {
		c.Fail(InvalidFieldInCDB(2, 7))
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	be, data := binary.BigEndian, r.appendStatus(nil)
	if r.token == nil || r.status != copyCompleted {
		data = append(data, 0, 0, 0, 0)
	} else {
		data = be.AppendUint32(data, 2+tokenLength) // ROD TOKEN DESCRIPTORS LENGTH
		data = append(append(data, 0, 0), r.token.data[:]...)
	}
	be.PutUint32(data, uint32(len(data)-4))
	c.SendParameter(data, receiveAllocation(&c.CDB))
}
