package scsi

import (
	"encoding/binary"
	"time"

	"lunar/backstore"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
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
	list, s := thirdparty.ParsePopulate(c.List(), c.Nexus.LU.medium())
	if s != nil {
		c.Fail(s)
		return
	}
	lu := c.Nexus.LU
	record, s := c.beginRecord(c.listIdentifier(), 0)
	if s != nil {
		c.Fail(s)
		return
	}
	token := c.Nexus.newToken(list.Ranges, list.Timeout)
	o := &copyOperation{record: record}
	c.feature = o
	if !lu.tokens.Add(token, time.Now(), lu.config.Refusals) {
		c.Fail(sense.InsufficientResourcesForToken)
		return
	}
	record.Describe(thirdparty.Description{Shift: lu.blockShift})
	o.fresh = token
	c.run(settleStep)
}

// settleStep lets what was changing the token's blocks when it was made end,
// range by range: later changes see the token.
func settleStep(c *Command) {
	o, s := c.copying(), c.carrier()
	for s.state != running {
		s.state = idle
		if o.index == len(o.fresh.Ranges) {
			o.record.SetToken(o.fresh)
			c.Good()
			return
		}
		r := o.fresh.Ranges[o.index]
		o.index++
		s.lock.cover(exclusive, r.Off, r.N)
		s.op.Off, s.op.Len, s.op.Data = r.Off, 0, nil
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
	list, s := thirdparty.ParseWriteUsing(c.List(), c.Nexus.LU.medium())
	if s != nil {
		c.Fail(s)
		return
	}
	w := tokenWrite{dest: &CSCD{Nexus: c.Nexus, Lane: c.Lane}, ranges: list.Ranges}
	if s = w.find(c, list.Token, list.Skip); s != nil {
		c.Fail(s)
		return
	}
	record, s := c.beginRecord(c.listIdentifier(), 0)
	if s == nil && w.token != nil {
		if s = w.source.Nexus.LU.tokens.Use(w.token, time.Now()); s != nil {
			record.End(thirdparty.Failed)
		}
	}
	if s != nil {
		c.Fail(s)
		return
	}
	record.Describe(thirdparty.Description{Shift: c.Nexus.LU.blockShift, Partial: w.partial, Background: list.Immediate})
	o := &copyOperation{moves: w.moves, record: record, token: w.token, source: w.source, remove: list.Delete}
	if !list.Immediate {
		c.resumeCopy(o)
		return
	}
	if !c.Port.Background(c, func(b *Command) { b.resumeCopy(o) }) {
		o.releaseToken()
		record.End(thirdparty.Failed)
		c.Fail(sense.InsufficientResources)
		return
	}
	c.Good()
}

// tokenWrite is what WRITE USING TOKEN is to do.
type tokenWrite struct {
	dest    *CSCD
	source  *CSCD               // nil: zeroes
	token   *thirdparty.Token   // nil: zeroes
	ranges  []thirdparty.Extent // of dest
	moves   []copyMove
	partial bool // the token stands for less than ranges ask for
}

// find finds what the token stands for, from skip blocks of the destination on,
// and makes the moves of it.
func (w *tokenWrite) find(c *Command, data []byte, skip uint64) *sense.Data {
	switch thirdparty.KindOf(data) {
	case thirdparty.InvalidToken:
		return sense.InvalidTokenLength
	case thirdparty.ZeroToken:
		for i, r := range w.ranges {
			w.moves = append(w.moves, copyMove{dest: w.dest, to: r.Off, n: r.N, segment: uint16(i)})
		}
		return nil
	case thirdparty.UnknownToken:
		return sense.UnsupportedTokenType
	}
	unit, ok := c.Port.Reach(c, func(n *Nexus) bool {
		w.token = n.LU.tokens.Find(data) // of this unit: the one before may have matched, and be closing
		return w.token != nil
	})
	switch {
	case w.token == nil:
		return sense.TokenUnknown
	case !ok || !unit.mayRead():
		return sense.InvalidTokenOperation
	}
	w.source = &unit
	off := skip << w.dest.Nexus.LU.blockShift
	if skip >= 1<<48 || off >= uint64(w.token.Size) {
		return sense.InvalidFieldInList(8, sense.NoBit)
	}
	return w.pair(int64(off))
}

// pair cuts the token's ranges from offset skip on and the destination's into
// pieces of the same length.
func (w *tokenWrite) pair(skip int64) *sense.Data {
	dest, from, used := w.dest.Nexus.LU, 0, skip
	here, there := dest.medium(), w.source.Nexus.LU.medium()
	left := w.token.Size - skip
	left &^= int64(dest.config.BlockSize) - 1 // whole blocks
	for i, to := range w.ranges {
		if dest == w.source.Nexus.LU && w.token.Overlaps(to.Off, to.N) {
			return sense.InvalidTokenOperation // it would revoke its own token
		}
		for to.N > 0 && left > 0 {
			r := w.token.Ranges[from]
			if used >= r.N {
				used, from = used-r.N, from+1
				continue
			}
			n := min(to.N, r.N-used, left)
			if !here.IsWhole(uint64(to.Off), uint64(n)) || !there.IsWhole(uint64(r.Off+used), uint64(n)) {
				return sense.InvalidTokenOperation // pieces of blocks
			}
			w.moves = append(w.moves, copyMove{source: w.source, dest: w.dest, from: r.Off + used, to: to.Off, n: n, segment: uint16(i)})
			to.Off, to.N, used, left = to.Off+n, to.N-n, used+n, left-n
		}
		w.partial = w.partial || to.N > 0
	}
	return nil
}

// newToken makes a token for extents of the nexus's logical unit.
func (n *Nexus) newToken(ranges []thirdparty.Extent, timeout time.Duration) *thirdparty.Token {
	lu := n.LU
	capacity := readCapacity16(lu.state.Load().Blocks, lu.config.BlockSize, lu.traits.Load().physical, lu.traits.Load().info)
	return thirdparty.NewToken(n.holder(), thirdparty.Creator{
		Unit: creatorDescriptor(lu), Capacity: capacity[8:], Device: deviceName(n.Target),
	}, ranges, timeout)
}

// creatorDescriptor is an identification descriptor CSCD of the logical unit.
func creatorDescriptor(lu *LogicalUnit) []byte {
	d := make([]byte, thirdparty.CSCDLength)
	d[0], d[1] = thirdparty.CSCDIdentification, directAccessDevice
	copy(d[4:28], lu.config.creatorDesignator())
	d[4], d[5] = d[4]&0x0f, d[5]&0x3f // without a protocol
	size := lu.config.BlockSize
	d[29], d[30], d[31] = byte(size>>16), byte(size>>8), byte(size)
	return d
}
