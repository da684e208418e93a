package rdma

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"lunar/iser/verbs"
)

// The shape of a stream: each side has as many receives, and a message begins with how many
// more of them there are than it knew.
const (
	streamSlots = 32
	streamSlot  = 8 << 10
	creditSize  = 2
)

var streamShape = shape{slots: streamSlots, slot: streamSlot, entries: streamSlots}

// stream is a connection for bytes (net.Conn) over messages of a wire.
type stream struct {
	wire *wire

	mu      sync.Mutex
	changed *sync.Cond
	in      [][]byte // that arrived, and nobody has read
	trust   int      // messages that the peer may send
	owed    int      // that it may send, and has not been told
	credits int      // messages that may be sent
	free    []int    // slots for them
	err     error
	reading deadline
	writing deadline
}

func newStream() *stream {
	s := &stream{trust: streamSlots, credits: streamSlots}
	s.changed = sync.NewCond(&s.mu)
	for i := range streamSlots {
		s.free = append(s.free, streamSlots+i)
	}
	return s
}

// attach implements user.
func (s *stream) attach(w *wire) { s.wire = w }

// arrived implements user.
func (s *stream) arrived(message []byte) {
	s.mu.Lock()
	more := -1
	if len(message) >= creditSize {
		more = int(binary.BigEndian.Uint16(message))
	}
	s.trust--
	bad := s.trust < 0 || more < 0 || s.credits+more > streamSlots
	if !bad {
		s.credits += more
		if rest := message[creditSize:]; len(rest) > 0 {
			s.in = append(s.in, rest)
		} else {
			s.owed++
		}
		s.pay()
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	if bad {
		s.wire.end(errors.New("RDMA: the peer sends what it may not send"))
	}
}

// sent implements user.
func (s *stream) sent(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, int(id))
	s.pay()
	s.changed.Broadcast()
}

// ended implements user.
func (s *stream) ended(why error) { s.fail(why) }

func (s *stream) fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = why
	}
	s.changed.Broadcast()
}

// pay tells the peer how much it may send, if that is worth a message. The last credit is for
// nothing else: so both sides never wait for each other.
func (s *stream) pay() {
	if s.owed >= streamSlots/2 {
		s.post(nil)
	}
}

// beat implements user: it sends something, but not the last credit for nothing.
func (s *stream) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.credits > 1 || s.owed > 0 {
		s.post(nil)
	}
}

// post sends a message, if there is a credit and a slot. Whoever waits hears of its failure.
func (s *stream) post(data []byte) {
	if s.err != nil || s.credits == 0 || len(s.free) == 0 {
		return
	}
	slot := s.free[0]
	place := s.wire.place(slot)
	binary.BigEndian.PutUint16(place, uint16(s.owed))
	n := creditSize + copy(place[creditSize:], data)
	if err := s.wire.post([]verbs.WR{{ID: uint64(slot), Op: verbs.OpSend, Flags: verbs.FlagSignaled, NSGE: 1}}, []verbs.SGE{s.wire.part(slot, n)}); err != nil {
		s.err = err
		s.changed.Broadcast()
		return
	}
	s.free = s.free[1:]
	s.trust += s.owed
	s.owed = 0
	s.credits--
}

// Read implements net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.in) == 0 && s.err == nil && !s.reading.passed {
		s.changed.Wait()
	}
	switch {
	case s.reading.passed:
		return 0, os.ErrDeadlineExceeded
	case len(s.in) == 0:
		return 0, s.err
	}
	n := copy(b, s.in[0])
	if s.in[0] = s.in[0][n:]; len(s.in[0]) == 0 {
		s.in = s.in[1:]
		s.owed++
		s.pay()
	}
	return n, nil
}

// Write implements net.Conn.
func (s *stream) Write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(b) {
		for (s.credits < 2 || len(s.free) == 0) && s.err == nil && !s.writing.passed {
			s.changed.Wait()
		}
		switch {
		case s.writing.passed:
			return n, os.ErrDeadlineExceeded
		case s.err != nil:
			return n, s.err
		}
		part := b[n:min(len(b), n+streamSlot-creditSize)]
		if s.post(part); s.err != nil {
			return n, s.err
		}
		n += len(part)
	}
	return n, nil
}

// Close implements net.Conn. What was written before is sent.
func (s *stream) Close() error {
	s.fail(net.ErrClosed)
	s.wire.finish()
	return nil
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(s.wire.id.LocalAddr()) }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.wire.id.PeerAddr()) }

// deadline is a time from which on nothing is waited for.
type deadline struct {
	passed bool
	timer  *time.Timer
}

func (s *stream) set(d *deadline, t time.Time) {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.passed, d.timer = false, nil
	if t.IsZero() {
		return
	}
	var own *time.Timer
	own = time.AfterFunc(time.Until(t), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.timer == own { // else there is a later one
			d.passed = true
			s.changed.Broadcast()
		}
	})
	d.timer = own
}

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.reading, t)
	s.set(&s.writing, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.reading, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.writing, t)
	return nil
}
