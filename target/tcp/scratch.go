package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// scratch is what the connections of an event thread share. Its memory is used by one
// at a time and holds nothing between two calls, so that it stays in the CPU's cache
// however many connections there are.
type scratch struct {
	memory  []byte // of both
	receive []byte
	ahead   []byte // to receive in while another connection's PDUs are in receive
	readv   [2]unix.Iovec
	sendv   []unix.Iovec
	pass    int64 // when the last pass began in which something left
	early   int   // how often it did before the end of the pass
	sent    int   // bytes that have left with long sends
	sending int64 // nanoseconds that those have taken
	ended   bool  // one of them was at its end
	pace    pace
	links   *links // of all threads
}

// begin notes that the pass that began at now goes on.
func (s *scratch) begin(now int64) {
	if s.pass != now {
		s.pass, s.early, s.sent, s.sending, s.ended = now, 0, 0, 0, false
	}
}

// sendsEarly takes one of the early sends of the pass that began at now.
func (s *scratch) sendsEarly(now int64) bool {
	s.begin(now)
	s.early++
	return s.early <= earlySends
}

// room is how many bytes a connection may send at once in the pass that began at now.
func (s *scratch) room(now int64) int {
	if !s.hasRoom(now) {
		return leastPart
	}
	return max(leastPart, min(s.pace.part(), passSent-s.sent))
}

// hasRoom reports whether the sends of the pass that began at now have not been long.
func (s *scratch) hasRoom(now int64) bool {
	s.begin(now)
	return s.sent < passSent && s.sending < passTime
}

// admits reports whether a connection may have a long send at the end of the pass that
// began at now: the first one may, whatever has left before, so that the line moves on.
func (s *scratch) admits(now int64) bool {
	room := s.hasRoom(now) || !s.ended
	s.ended = true
	return room
}

// send is a sendmsg of bytes, which is counted if they are many.
func (s *scratch) send(fd int, iov []unix.Iovec, bytes int) (n int, errno unix.Errno) {
	if bytes < longFrom {
		return evloop.Sendmsg(fd, iov, 0)
	}
	begin := evloop.Monotonic()
	n, errno = evloop.Sendmsg(fd, iov, 0)
	took := evloop.Monotonic() - begin
	s.sent += bytes
	s.sending += took
	if n >= leastPart {
		s.pace.took(n, took)
	}
	return n, errno
}

// scratchSize is the memory to receive in, in bytes: besides what one read brings, it
// takes the start of a PDU that is not placed yet.
const scratchSize = aheadSize + rxScratch

// aheadSize is the same for connections that are served before others: they get little
// at once.
const aheadSize = pdu.BHSLength + pdu.MaxAHSLength + pdu.DigestLength + placeFrom + 64<<10

// rxScratch is what the memory to receive in has beyond the longest data segment: bytes
// read at once, for all connections of the thread in turn.
const rxScratch = 256 << 10

// placeFrom is the data segment length from which the rest of a segment
// is read to where it belongs rather than into the scratch.
const placeFrom = 16 << 10

// maxIOV is how many pieces one sendmsg takes (UIO_MAXIOV).
const maxIOV = 1024

// scratches are those of all event threads. They do not change while connections are
// there.
type scratches map[*evloop.Loop]*scratch

// add makes that of a thread, in memory of its node.
func (all scratches) add(loop *evloop.Loop) error {
	memory, err := arena.Map(scratchSize+aheadSize, loop.Memory())
	if err != nil {
		return fmt.Errorf("event thread %s: %w", loop.Name(), err)
	}
	clear(memory) // now, so that it is there when the first connection comes
	all[loop] = &scratch{memory: memory, receive: memory[:scratchSize], ahead: memory[scratchSize:], sendv: make([]unix.Iovec, maxIOV)}
	return nil
}

// release gives the memory back.
func (all scratches) release() {
	for _, s := range all {
		_ = unix.Munmap(s.memory) // add has mapped it
	}
	clear(all)
}
