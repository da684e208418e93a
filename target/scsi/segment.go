package scsi

import (
	"errors"

	"lunar/backstore"
	"lunar/internal/buf"
)

// segment is one piece of a command's data on its way, and the carrier of all
// its backstore operations.
type segment struct {
	op    backstore.Op
	cmd   *Command
	ref   *buf.Ref
	off   uint32 // buffer offset
	n     uint32
	state segmentState
	phase uint8      // of commands with several operations per segment
	lock  extentLock // in the extent guard
	cscd  *CSCD      // of a copy: where the operation goes, if not to the command's logical unit
	whole []byte     // op.Data, while the operation is done in parts
	all   int64      // op.Len then, else 0
}

// nexus returns whose logical unit the operation is for.
func (s *segment) nexus() *Nexus {
	if s.cscd != nil {
		return s.cscd.Nexus
	}
	return s.cmd.Nexus
}

func (s *segment) lane() backstore.Lane {
	if s.cscd != nil {
		return s.cscd.Lane
	}
	return s.cmd.Lane
}

// segmentState is how far a segment has come.
type segmentState uint8

const (
	idle      segmentState = iota
	receiving              // Data-Out is on its way
	arrived                // Data-Out is in place
	running                // the operation is in the hands of the lane or the extent guard
	handing                // it is being given to the lane
	done                   // the operation has ended
)

// bind prepares a fresh command's segments: once in a command's life, so that
// its operations allocate nothing.
func (c *Command) bind() {
	for i := range c.seg {
		s := &c.seg[i]
		s.cmd, s.op.Done, s.lock.owner = c, s.ended, s
	}
}

// at returns the i-th segment of the command, counted from its first.
func (c *Command) at(i uint32) *segment { return &c.seg[i%MaxSegments] }

// room reports whether another segment may start.
func (c *Command) room() bool { return c.next < c.limit && c.tail-c.head < MaxSegments }

// alloc returns a buffer, or nil until the port has called Resume. With landing
// set all of it is for the next bytes of Data-Out.
func (c *Command) alloc(n uint32, landing bool) *buf.Ref {
	if c.starved {
		return nil
	}
	c.landing = landing
	ref := c.Port.Alloc(c, int(n))
	c.starved = ref == nil
	return ref
}

// open starts the next segment, of at most span bytes, with a buffer of the
// given number of equal parts, each page-aligned and of the segment's whole
// blocks. It returns nil when no memory is there.
func (c *Command) open(span, parts uint32) *segment {
	if c.shield.active {
		return c.openShielded()
	}
	n := min(span, c.limit-c.next)
	size := c.Nexus.LU.wholeBlocks(n)
	if parts > 1 {
		size = wholePages(size) * parts
	}
	ref := c.alloc(size, parts == 1 && c.row.Access == AccessWrite)
	if ref == nil {
		return nil
	}
	s := c.at(c.tail)
	s.ref, s.off, s.n = ref, c.next, n
	c.tail++
	c.next += n
	return s
}

// wholePages rounds n bytes up to pages, which is where a part of a buffer may
// begin that goes to the lane.
func wholePages(n uint32) uint32 { return (n + buf.PageSize - 1) &^ (buf.PageSize - 1) }

// close ends the oldest segment.
func (c *Command) close() {
	s := c.at(c.head)
	c.head++
	s.release()
}

// release lets go of the segment's buffer and its place in the guard.
func (s *segment) release() {
	if s.lock.mode != unguarded {
		s.lock.release()
	}
	if s.ref != nil {
		s.ref.Release()
		s.ref = nil
	}
	s.state, s.phase, s.op.Data, s.cscd = idle, 0, nil, nil
	s.op.Tuples, s.op.Unchecked, s.op.Atomic = nil, false, false
}

// receive asks for the segment's Data-Out.
func (s *segment) receive() {
	c := s.cmd
	s.state = receiving
	c.out++
	c.Port.ReceiveDataOut(c, s.off, s.data())
}

// start gives the segment's operation on its part of the medium to the lane.
// It has ended when state is done, possibly before start returns; its result
// is op.Err. Data is the whole extent's buffer.
func (s *segment) start(kind backstore.Kind, data []byte) {
	c := s.cmd
	s.op.Off, s.op.Len, s.op.Data = c.Nexus.LU.byteOff(c.lba)+int64(s.off), int64(len(data)), data
	s.launch(kind)
}

// data returns the segment's bytes.
func (s *segment) data() []byte { return s.ref.Bytes()[:s.n] }

// launch submits the prepared operation once the extent guard lets it pass:
// whatever changes the medium holds its extent, at least shared.
func (s *segment) launch(kind backstore.Kind) {
	s.op.Kind, s.op.Err, s.op.Hit, s.op.FUA = kind, nil, false, kind == backstore.Write && s.cmd.fua
	if changes(kind) && s.lock.mode == unguarded {
		s.lock.cover(shared, s.op.Off, s.op.Len)
	}
	if s.volatile() {
		s.nexus().writesVolatile()
	}
	s.state = running
	s.cmd.running++
	if s.lock.mode == unguarded || s.lock.acquire() {
		s.submit()
	}
}

// Run implements Task: the extent guard has let the segment proceed.
func (s *segment) Run() {
	if !s.lock.proceed() {
		return
	}
	if s.cmd.ending {
		s.end()
		return
	}
	s.submit()
}

// submit gives the operation to the lane, after the turn of others when the
// command's operations have ended at once for long enough.
func (s *segment) submit() {
	c := s.cmd
	turn := s.turn()
	if turn == 0 {
		return
	}
	if s.shutOut() {
		s.op.Err = errSanitizing
		s.end()
		return
	}
	if s.cscd != nil && changes(s.op.Kind) && !s.cscd.mayWrite() {
		s.op.Err = errFenced
		s.end()
		return
	}
	if s.op.Kind == backstore.Read && s.op.Len == 0 {
		s.end() // it was about the extent guard alone
		return
	}
	s.changing()
	s.state = handing
	if !c.refused && s.tryNow(turn) {
		return
	}
	if s.lane().Submit(&s.op) {
		c.inline += max(s.op.Len, leastInline)
		s.end()
		return
	}
	s.state = running
}

// turn returns how many bytes of the operation may be moved at once: 0 says that it goes
// on in the command's next turn.
func (s *segment) turn() int64 {
	c := s.cmd
	turn := min(maxInline, c.Port.Turn(c))
	if s.within() {
		most := min(turn, partWithin)
		if s.op.Data == nil {
			most = partReleased
		}
		if !c.Port.Within(c, min(most, s.op.Len), (*nextTurn)(s)) {
			return 0
		}
		return most
	}
	if c.inline >= turn {
		c.inline = 0
		c.Port.Again(c, (*nextTurn)(s))
		return 0
	}
	return turn
}

// within reports whether the operation moves more than the initiator sends or takes.
func (s *segment) within() bool {
	return moves(s.op.Kind) && s.op.Len > 0 && (s.cscd != nil || s.op.Len > int64(s.cmd.Length))
}

// moves reports whether an operation does so much with each byte of its extent, and is the
// same if it is done in parts.
func moves(kind backstore.Kind) bool {
	switch kind {
	case backstore.Read, backstore.Write, backstore.Discard, backstore.WriteZeroes:
		return true
	}
	return false
}

// tryNow has the lane do what of the operation may be done in one turn, if it does that
// at once, and goes on with the rest in the next.
func (s *segment) tryNow(turn int64) bool {
	o, left, length := &s.op, s.op.Data, s.op.Len
	if length > turn && moves(o.Kind) && o.Tuples == nil && !o.Atomic {
		if s.all == 0 {
			s.whole, s.all = left, length
		}
		s.part(left, 0, turn)
	}
	taken := s.lane().TryNow(o)
	n := o.Len
	if s.all > 0 {
		s.part(left, 0, length)
	}
	if !taken {
		return false
	}
	s.cmd.inline += max(n, leastInline)
	if s.all > 0 && n < length && o.Err == nil {
		s.cmd.missed = s.cmd.missed || !o.Hit
		o.Hit = false
		o.Off += n
		s.part(left, n, length)
		s.state = running
		s.submit()
		return true
	}
	s.end()
	return true
}

// part makes what lies between two offsets in data, which is nil of what needs none, all
// that the operation is about.
func (s *segment) part(data []byte, from, to int64) {
	if data != nil {
		data = data[from:to]
	}
	s.op.Data, s.op.Len = data, to-from
}

// errSanitizing refuses what came before a sanitize operation and would change
// the medium after it.
var errSanitizing = errors.New("a sanitize operation has begun")

// errFenced refuses a part of a copy that may not be written any more. Who has
// fenced the copy off waits for those that hold their extents.
var errFenced = errors.New("the copy must not write any more")

// shutOut reports whether the operation must not change the medium any more.
// The segment holds its extent, and each piece of a sanitize operation waits
// for that.
func (s *segment) shutOut() bool {
	return changes(s.op.Kind) && !s.cmd.sanitizes && s.nexus().LU.state.Load().Sanitize != nil
}

// changing revokes the tokens for what the operation is about to change.
func (s *segment) changing() {
	if changes(s.op.Kind) {
		s.nexus().LU.tokens.Changing(s.op.Off, s.op.Len)
	}
}

// nextTurn is a segment that waits for its command's next turn.
type nextTurn segment

// Run implements Task.
func (t *nextTurn) Run() {
	s := (*segment)(t)
	defer s.cmd.Port.Contain(s.cmd)
	if s.cmd.ending {
		s.end()
		return
	}
	s.submit()
}

// ended is op.Done.
func (s *segment) ended(*backstore.Op) {
	defer s.cmd.Port.Contain(s.cmd)
	s.end()
}

func (s *segment) end() {
	c := s.cmd
	if s.lock.mode != unguarded && !s.lock.keep {
		s.lock.release()
	}
	if s.volatile() {
		s.nexus().wroteVolatile()
	}
	if s.all > 0 {
		s.op.Off += s.op.Len - s.all
		s.part(s.whole, 0, s.all)
		s.whole, s.all = nil, 0
	}
	s.state = done
	c.missed = c.missed || !s.op.Hit
	c.running--
	c.pump()
}

// volatile reports whether the segment's operation is a write that may stay in
// the volatile cache.
func (s *segment) volatile() bool { return changes(s.op.Kind) && !s.cmd.fua }

// changes reports whether operations of the kind change the medium.
func changes(kind backstore.Kind) bool { return kind.Changes() }
