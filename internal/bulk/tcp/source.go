package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"lunar/internal/bulk/keyed"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Source is the link of the side that sends.
type Source struct {
	*keyed.Control
	address string
	dialer  net.Dialer
	queue   chan frame

	mu    sync.Mutex
	conns []net.Conn
}

// frame is a block that is to be written.
type frame struct {
	head []byte // BLOCK_DONE
	data []byte
	done func(error)
}

// Dial connects to who receives at an address, with the one-time key of both.
func Dial(ctx context.Context, address string, key keyed.Key) (*Source, error) {
	s := &Source{address: address, dialer: net.Dialer{Timeout: keyed.HandshakeTime}}
	raw, err := s.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tune(raw)
	if _, err = raw.Write([]byte{controlChannel}); err == nil {
		s.Control, err = keyed.Client(ctx, raw, key)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", address, err), raw.Close())
	}
	return s, nil
}

// Ordered implements bulk.SourceLink.
func (s *Source) Ordered() bool { return true }

// Open implements bulk.SourceLink.
func (s *Source) Open(session uint32, n int, pool *pipeline.Pool) error {
	s.queue = make(chan frame, len(pool.Blocks))
	for i := range n {
		hello, err := s.Hello(session, i)
		if err != nil {
			return err
		}
		conn, err := s.dialer.Dial("tcp", s.address)
		if err != nil {
			return err
		}
		tune(conn)
		if !s.take(conn) {
			return errors.Join(net.ErrClosed, conn.Close())
		}
		if _, err := conn.Write(append([]byte{dataChannel}, hello...)); err != nil {
			return err
		}
		s.Users.Add(1)
		go s.serve(conn)
	}
	return nil
}

// take has Close close a connection. False: it was called already.
func (s *Source) take(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.Closed():
		return false
	default:
		s.conns = append(s.conns, conn)
		return true
	}
}

// serve writes frames to one channel.
func (s *Source) serve(conn net.Conn) {
	defer s.Users.Done()
	for {
		select {
		case <-s.Closed():
			return
		case f := <-s.queue:
			parts := net.Buffers{f.head, f.data}
			_, err := parts.WriteTo(conn)
			f.done(err)
		}
	}
}

// Write implements bulk.SourceLink.
func (s *Source) Write(b *pipeline.Block, data []byte, c rftp.Credit, done func(error)) {
	m := rftp.Message{Type: rftp.BlockDone, Session: b.Session, Sequence: b.Sequence, Addr: c.Addr}
	s.queue <- frame{m.Append(nil), data, done} // which has room for all blocks
}

// Close implements bulk.Link. Blocks that were not begun are not written, and nobody hears of
// them.
func (s *Source) Close() error {
	err := s.Control.Close()
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, c := range conns {
		err = errors.Join(err, c.Close())
	}
	return err
}
