package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"lunar/internal/bulk/keyed"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Sink is the link of the side that stores.
type Sink struct {
	*keyed.Sink
	lead   int
	length int

	mu    sync.Mutex
	conns []net.Conn
}

// Expose implements bulk.SinkLink. Addresses are places in the pool's memory.
func (s *Sink) Expose(session uint32, n int, pool *pipeline.Pool, lead, length int, at func(uint64) *pipeline.Block) (base uint64, rkey uint32, err error) {
	s.lead, s.length = lead, length // before anybody is admitted
	return uint64(lead), 0, s.Await(session, n, at)
}

// join takes a data channel whose hello has the right token.
func (s *Sink) join(conn net.Conn, hello []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Admit(hello) {
		return false
	}
	select {
	case <-s.Closed():
		return false
	default:
	}
	s.conns = append(s.conns, conn)
	s.Users.Add(1)
	go s.serve(conn)
	return true
}

// serve reads the blocks of a channel to where their credits say.
func (s *Sink) serve(conn net.Conn) {
	defer s.Users.Done()
	for {
		m, err := keyed.Read(conn)
		if errors.Is(err, io.EOF) {
			return // all was sent; else the control channel tells
		}
		if err == nil {
			err = s.block(conn, &m)
		}
		if !s.Deliver(m, err) || err != nil {
			return
		}
	}
}

func (s *Sink) block(conn net.Conn, m *rftp.Message) error {
	b, err := s.Block(m)
	if err != nil {
		return err
	}
	frame := b.Memory[s.lead : s.lead+s.length]
	if _, err := io.ReadFull(conn, frame[:rftp.FrontSize]); err != nil {
		return err
	}
	rest := int64(binary.BigEndian.Uint32(frame[4:])) + gcmTag
	if rest > int64(s.length-rftp.FrontSize) {
		return fmt.Errorf("data channel: found a block of %d bytes, expected at most %d", rest, s.length-rftp.FrontSize)
	}
	_, err = io.ReadFull(conn, frame[rftp.FrontSize:rftp.FrontSize+rest])
	return err
}

// gcmTag is what the cipher adds to a block.
const gcmTag = 16

// Wait implements bulk.Link. It closes first: whoever has begun to may not have come far, and
// a channel that came in behind would read into memory that is gone.
func (s *Sink) Wait() {
	_ = s.Close() // whoever closed has the error
	s.Sink.Wait()
}

// Close implements bulk.Link.
func (s *Sink) Close() error {
	err := s.Sink.Close()
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		err = errors.Join(err, c.Close())
	}
	return err
}
