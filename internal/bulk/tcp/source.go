package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Source is the link of the side that sends.
type Source struct {
	*control
	address string
	dialer  net.Dialer
	queue   chan frame
	conns   []net.Conn
}

// frame is a block that is to be written.
type frame struct {
	head []byte // BLOCK_DONE
	data []byte
	done func(error)
}

// Dial connects to who receives at an address, with the one-time key of both.
func Dial(ctx context.Context, address string, key Key) (*Source, error) {
	config, err := key.config(sender, receiver)
	if err != nil {
		return nil, err
	}
	s := &Source{address: address, dialer: net.Dialer{Timeout: handshakeTime}}
	raw, err := s.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	tune(raw)
	conn := tls.Client(raw, config)
	_ = raw.SetDeadline(time.Now().Add(handshakeTime)) // a connection that has none fails below
	_, err = raw.Write([]byte{controlChannel})
	if err == nil {
		err = conn.HandshakeContext(ctx)
	}
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err == nil {
		s.control, err = newControl(conn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", address, err), raw.Close())
	}
	return s, nil
}

// Ordered implements bulk.SourceLink.
func (s *Source) Ordered() bool { return true }

// Receive implements bulk.Link.
func (s *Source) Receive() (rftp.Message, error) { return read(s.conn) }

// Open implements bulk.SourceLink.
func (s *Source) Open(session uint32, n int, pool *pipeline.Pool) error {
	s.queue = make(chan frame, len(pool.Blocks))
	for i := range n {
		token, err := s.token(session, i)
		if err != nil {
			return err
		}
		conn, err := s.dialer.Dial("tcp", s.address)
		if err != nil {
			return err
		}
		tune(conn)
		s.conns = append(s.conns, conn)
		if _, err := conn.Write(append([]byte{dataChannel}, hello(session, i, token)...)); err != nil {
			return err
		}
		s.users.Add(1)
		go s.serve(conn)
	}
	return nil
}

// serve writes frames to one channel.
func (s *Source) serve(conn net.Conn) {
	defer s.users.Done()
	for {
		select {
		case <-s.closed:
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
func (s *Source) Close() (err error) {
	s.closing.Do(func() {
		close(s.closed)
		_ = s.conn.NetConn().SetWriteDeadline(time.Now().Add(time.Second))
		err = s.conn.Close()
		for _, c := range s.conns {
			err = errors.Join(err, c.Close())
		}
	})
	return err
}
