package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Sink is the link of the side that stores.
type Sink struct {
	*control
	in chan arrival

	mu      sync.Mutex
	session uint32
	tokens  [][]byte // of channels that have not come in; nil: they are not awaited
	conns   []net.Conn
	lead    int
	length  int
	at      func(uint64) *pipeline.Block
}

type arrival struct {
	rftp.Message
	err error
}

// pump brings the control channel's messages.
func (s *Sink) pump() {
	for {
		m, err := read(s.conn)
		if !s.deliver(arrival{m, err}) || err != nil {
			return
		}
	}
}

func (s *Sink) deliver(a arrival) bool {
	select {
	case s.in <- a:
		return true
	case <-s.closed:
		return false
	}
}

// Receive implements bulk.Link.
func (s *Sink) Receive() (rftp.Message, error) {
	select {
	case a := <-s.in:
		return a.Message, a.err
	case <-s.closed:
		return rftp.Message{}, net.ErrClosed
	}
}

// Expose implements bulk.SinkLink. Addresses are places in the pool's memory.
func (s *Sink) Expose(session uint32, n int, pool *pipeline.Pool, lead, length int, at func(uint64) *pipeline.Block) (base uint64, rkey uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.lead, s.length, s.at = session, lead, length, at
	for i := range n {
		token, err := s.token(session, i)
		if err != nil {
			return 0, 0, err
		}
		s.tokens = append(s.tokens, token)
	}
	return uint64(lead), 0, nil
}

// join takes a data channel whose hello has the right token.
func (s *Sink) join(conn net.Conn, head []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, channel := binary.BigEndian.Uint32(head), int(binary.BigEndian.Uint16(head[4:]))
	if session != s.session || channel >= len(s.tokens) || !same(s.tokens[channel], head[6:]) || s.isClosed() {
		return false
	}
	s.tokens[channel] = nil
	s.conns = append(s.conns, conn)
	s.users.Add(1)
	go s.serve(conn)
	return true
}

func (s *Sink) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// serve reads the blocks of a channel to where their credits say.
func (s *Sink) serve(conn net.Conn) {
	defer s.users.Done()
	for {
		m, err := read(conn)
		if errors.Is(err, io.EOF) {
			return // all was sent; else the control channel tells
		}
		if err == nil {
			err = s.block(conn, &m)
		}
		if !s.deliver(arrival{m, err}) || err != nil {
			return
		}
	}
}

func (s *Sink) block(conn net.Conn, m *rftp.Message) error {
	if m.Type != rftp.BlockDone || m.Session != s.session {
		return fmt.Errorf("data channel: found %v of session %d, expected %v of %d", m.Type, m.Session, rftp.BlockDone, s.session)
	}
	b := s.at(m.Addr)
	if b == nil {
		return fmt.Errorf("data channel: found a block for address %#x, where no credit was given", m.Addr)
	}
	frame := b.Memory[s.lead : s.lead+s.length]
	if _, err := io.ReadFull(conn, frame[:rftp.FrontSize]); err != nil {
		return err
	}
	rest := int64(binary.BigEndian.Uint32(frame[4:])) + gcmTag
	if rest > int64(s.length-rftp.FrontSize) {
		return fmt.Errorf("data channel: found a block of %d bytes, expected at most %d", rest, s.length-rftp.FrontSize)
	}
	_, err := io.ReadFull(conn, frame[rftp.FrontSize:rftp.FrontSize+rest])
	return err
}

// gcmTag is what the cipher adds to a block.
const gcmTag = 16

// Close implements bulk.Link.
func (s *Sink) Close() (err error) {
	s.closing.Do(func() {
		s.mu.Lock()
		close(s.closed)
		conns := s.conns
		s.mu.Unlock()
		_ = s.conn.NetConn().SetWriteDeadline(time.Now().Add(time.Second))
		err = s.conn.Close()
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
	})
	return err
}
