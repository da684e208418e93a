package scsi

import (
	"errors"
	"time"

	"lunar/backstore"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// copyMove is one contiguous piece of a copy, in bytes of both stores.
type copyMove struct {
	source  *CSCD // nil: zeroes
	dest    *CSCD
	from    int64
	to      int64
	n       int64
	segment uint16 // number of the segment descriptor that asks for it
}

// overlaps reports whether the destination begins within the source. Such a
// piece is moved from its end to its start, one part at a time, so that
// nothing is read that was written before; the other way round the same holds
// from start to end.
func (m *copyMove) overlaps() (any, descending bool) {
	if m.source == nil || m.source.Nexus.LU != m.dest.Nexus.LU || m.from == m.to {
		return false, false
	}
	return m.from < m.to+m.n && m.to < m.from+m.n, m.from < m.to
}

// copyOperation is a copy under way: its moves are done in sequence, each as up
// to MaxSegments parts that are read from the source and written to the
// destination, in the memory budget of the session that asked. Writes pass the
// extent guard and the lanes like those of initiators, so that caches and
// COMPARE AND WRITE stay coherent.
type copyOperation struct {
	moves   []copyMove
	index   int   // of the move under way
	started int64 // bytes of it that were started
	flushed bool  // the move's destination was flushed after it, as its WCE demands
	writes  bool  // zeroes are written: the store knows no faster way
	record  *thirdparty.Record
	window  copyWindow

	// Of the commands with tokens.
	fresh  *thirdparty.Token // that the command makes
	token  *thirdparty.Token // what it reads by; nil: it is no such copy
	source *CSCD             // of token
	remove bool              // the token is deleted in the end

	paying bool // the answer to Payments.Pay is pending
	paid   bool // the next part may be moved
}

// The phases of a part.
const (
	copyReading uint8 = iota
	copyWriting
)

// runCopy begins the moves, which were checked.
func (c *Command) runCopy(moves []copyMove, record *thirdparty.Record) {
	c.resumeCopy(&copyOperation{moves: moves, record: record})
}

func (c *Command) resumeCopy(o *copyOperation) {
	c.feature = o
	for i := range o.moves {
		o.moves[i].dest.Nexus.LU.copying.Add(1)
		o.record.Remember(newCopyDest(o.moves[i].dest.Nexus.LU))
	}
	c.step = nil
	c.run(copyStep)
}

func copyStep(c *Command) {
	o := c.copying()
	for o.index < len(o.moves) {
		m := &o.moves[o.index]
		if !c.copyParts(m) {
			return
		}
		for o.started < m.n && c.copyRoom(m) {
			if !c.startPart(m) {
				return
			}
		}
		if c.head != c.tail {
			if c.at(c.head).state == running {
				return
			}
			continue // parts that ended at once
		}
		if o.started < m.n {
			continue
		}
		if !o.flushed && !c.fua && !m.dest.Nexus.LU.state.Load().WriteCache {
			c.flushDestination(m)
			continue
		}
		o.index, o.started, o.flushed = o.index+1, 0, false
	}
	c.Good()
}

// copyAllowed fails the copy if it must not use its source or destination any
// more: who is fenced off while it copies, or is not granted a LUN any more that it
// reads, writes or was asked of, writes no further part; or if it has been aborted.
func (c *Command) copyAllowed(m *copyMove) bool {
	if c.obey(c.copying().record, m.segment) {
		return false
	}
	if c.Nexus.grants(false) && (m.source == nil || m.source.mayRead()) && m.dest.mayWrite() {
		return true
	}
	c.failFenced(m)
	return false
}

// failFenced ends a copy that must not use its source or destination any more.
func (c *Command) failFenced(m *copyMove) {
	s := copyAborted(sense.ASCThirdPartyDeviceFailure, m.segment)
	c.copying().record.Fail(&s, m.segment)
	c.Fail(c.sense(s))
}

// copyRoom reports whether another part may start.
func (c *Command) copyRoom(m *copyMove) bool {
	if any, _ := m.overlaps(); any || m.source == nil && !c.copying().writes {
		return c.head == c.tail
	}
	return c.tail-c.head < MaxSegments
}

// startPart starts the next part of the move. False says that it waits for
// memory, or that the copy is to end.
func (c *Command) startPart(m *copyMove) bool {
	if !c.copyAllowed(m) {
		return false
	}
	o := c.copying()
	if o.started == 0 {
		byWriting := m.source != nil || o.writes // else the flush behind it
		c.fua = byWriting && !m.dest.Nexus.LU.state.Load().WriteCache
	}
	if m.source == nil && !o.writes {
		c.startZeroes(m)
		return true
	}
	if m.source != nil && !c.enterWindow(m) {
		return false
	}
	n := min(SegmentSize, m.n-o.started)
	if !c.pays(2 * n) {
		return false
	}
	ref := c.alloc(uint32(n), false)
	if ref == nil {
		return false
	}
	o.paid = false
	at := o.started
	if _, descending := m.overlaps(); descending {
		at = m.n - o.started - n
	}
	o.started += n
	s := c.at(c.tail)
	c.tail++
	s.ref, s.off, s.n, s.phase = ref, uint32(at), uint32(n), copyReading
	if m.source == nil {
		clear(ref.Bytes())
		s.phase = copyWriting
		s.cscd, s.op.Off, s.op.Len, s.op.Data = m.dest, m.to+at, n, ref.Bytes()
		s.launch(backstore.Write)
		return true
	}
	s.cscd, s.op.Off, s.op.Len, s.op.Data = m.source, m.from+at, n, ref.Bytes()
	s.launch(backstore.Read)
	return true
}

// pays reports whether the next part may be moved by the initiator's limits; else
// the copy goes on with Paid.
func (c *Command) pays(bytes int64) bool {
	o := c.copying()
	if o.paid || o.paying {
		return o.paid
	}
	port, ok := c.Port.(Payments)
	o.paid = !ok || port.Pay(c, bytes)
	o.paying = !o.paid
	return o.paid
}

// Paid continues a copy after Payments.Pay was false.
func (c *Command) Paid() {
	if o, ok := c.feature.(*copyOperation); ok && !c.ending {
		o.paying, o.paid = false, true
		c.pump()
	}
}

// startZeroes starts zeroing the next piece of the move's destination.
func (c *Command) startZeroes(m *copyMove) {
	o := c.copying()
	n := min(pieceSize, m.n-o.started)
	s := c.at(c.tail)
	c.tail++
	s.phase, s.n = copyWriting, uint32(n)
	s.cscd, s.op.Off, s.op.Len, s.op.Data = m.dest, m.to+o.started, n, nil
	o.started += n
	s.launch(backstore.WriteZeroes)
}

// copyParts takes the parts under way as far as they can go. It returns false
// when the command is to end.
func (c *Command) copyParts(m *copyMove) bool {
	for i := c.head; i != c.tail; i++ {
		s := c.at(i)
		for s.state == done && s.phase == copyReading {
			if s.op.Err != nil {
				c.failCopy(s, m)
				return false
			}
			if t := c.copying().token; t != nil && t.Revoked() {
				c.failToken(m)
				return false
			}
			if !c.copyAllowed(m) {
				return false
			}
			s.phase = copyWriting
			s.cscd, s.op.Off = m.dest, m.to+int64(s.off)
			s.launch(backstore.Write)
		}
		if s.state == done && s.op.Kind == backstore.WriteZeroes && errors.Is(s.op.Err, backstore.ErrUnsupported) {
			c.copying().writes = true
			c.copying().started -= s.op.Len
			c.close() // it was alone
			continue
		}
		if s.state == done && s.op.Err != nil {
			c.failCopy(s, m)
			return false
		}
	}
	for c.head != c.tail && c.at(c.head).state == done {
		s := c.at(c.head)
		if s.op.Kind != backstore.Flush {
			c.copying().record.Count(uint64(s.n), m.segment)
		}
		c.close()
	}
	return true
}

// flushDestination makes the move's writes stable: MODE SELECT has turned the
// write cache off meanwhile.
func (c *Command) flushDestination(m *copyMove) {
	c.copying().flushed = true
	s := c.at(c.tail)
	c.tail++
	s.phase, s.n = copyWriting, 0
	s.cscd, s.op.Off, s.op.Len, s.op.Data = m.dest, 0, 0, nil
	s.launch(backstore.Flush)
}

// failCopy ends the copy because of a part's operation.
func (c *Command) failCopy(s *segment, m *copyMove) {
	if s.op.Err == errFenced {
		c.failFenced(m)
		return
	}
	lu := s.nexus().LU
	lba := uint64(s.op.Off) >> lu.blockShift
	lu.complain(s.op.Kind, lba, s.op.Err)
	cause := senseOf(s.op.Err, s.op.Kind, lba)
	c.copying().record.Fail(&cause, m.segment)
	if c.row.Access == AccessWrite && s.phase == copyWriting {
		c.Fail(c.sense(cause)) // WRITE USING TOKEN's own logical unit
		return
	}
	c.Fail(c.sense(copyAborted(sense.ASCThirdPartyDeviceFailure, m.segment)))
}

// failToken ends a copy whose token has been revoked.
func (c *Command) failToken(m *copyMove) {
	c.copying().record.Fail(sense.TokenRevoked, m.segment)
	c.Fail(sense.TokenRevoked)
}

// copyAborted tells that a segment descriptor could not be processed (SPC-4
// clause 6.4.4): INFORMATION is its number.
func copyAborted(asc sense.ASC, segment uint16) sense.Data {
	return sense.Data{Key: sense.CopyAborted, ASC: asc, InfoValid: true, Info: uint64(segment)}
}

// copying is the operation of a command that copies.
func (c *Command) copying() *copyOperation { return c.feature.(*copyOperation) }

// cancel implements feature.
func (o *copyOperation) cancel(*Command) bool { return o.window.endWait() }

// discarded implements feature.
func (o *copyOperation) discarded(c *Command, running bool) {
	o.window.release()
	if running {
		o.record.End(thirdparty.Terminated) // but who preempts still waits for its extents
		return
	}
	o.ended(c)
}

// ended implements feature. It follows the end of the command, whatever it was.
func (o *copyOperation) ended(c *Command) {
	o.releaseToken()
	o.window.release()
	for i := range o.moves {
		o.moves[i].dest.Nexus.LU.copying.Add(-1)
	}
	if o.fresh != nil && (c.aborted || c.Status != Good) {
		c.Nexus.LU.tokens.Forget(o.fresh)
	}
	switch {
	case c.aborted:
		o.record.End(thirdparty.Terminated)
	case c.Sense == sense.CopyCleared:
		o.record.End(thirdparty.Terminated)
	case c.Status != Good:
		o.record.End(thirdparty.Failed)
	default:
		o.record.End(thirdparty.Completed)
	}
}

// releaseToken gives the token back.
func (o *copyOperation) releaseToken() {
	if t := o.token; t != nil {
		o.token = nil
		o.source.Nexus.LU.tokens.Release(t, o.remove, time.Now())
	}
}

// Copies reports that the command copies data within the server.
func (c *Command) Copies() bool {
	_, ok := c.feature.(*copyOperation)
	return ok
}

// obey ends the copy if it has been aborted (SPC-4 clause 5.17.4.7).
func (c *Command) obey(r *thirdparty.Record, segment uint16) bool {
	if !r.Aborted() {
		return false
	}
	s := copyAborted(sense.ASCCommandsClearedByDevice, segment)
	r.Fail(&s, segment)
	c.Fail(c.sense(s))
	return true
}
