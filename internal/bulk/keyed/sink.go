package keyed

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"net"
	"sync"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// Sink is the side that stores: what comes by its channels, and who may open one.
type Sink struct {
	*Control
	in chan arrival

	mu      sync.Mutex
	session uint32
	hellos  [][]byte // of channels that have not come in; nil: they are not awaited
	at      func(uint64) *pipeline.Block
}

type arrival struct {
	rftp.Message
	err error
}

// arrivals are how many messages may wait.
const arrivals = 256

// NewSink is one whose control channel's messages come in.
func NewSink(c *Control) *Sink {
	s := &Sink{Control: c, in: make(chan arrival, arrivals)}
	go s.pump()
	return s
}

// pump brings the control channel's messages.
func (s *Sink) pump() {
	for {
		m, err := Read(s.conn)
		if !s.Deliver(m, err) || err != nil {
			return
		}
	}
}

// Deliver has Receive return a message, or an error. False: nobody receives any more.
func (s *Sink) Deliver(m rftp.Message, err error) bool {
	select {
	case s.in <- arrival{m, err}:
		return true
	case <-s.closed:
		return false
	}
}

// Offer is Deliver that does not wait. False: too much waits already, or nobody receives.
func (s *Sink) Offer(m rftp.Message, err error) bool {
	select {
	case s.in <- arrival{m, err}:
		return true
	default:
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

// Await lets n data channels of a session come in. at is that of bulk.SinkLink.
func (s *Sink) Await(session uint32, n int, at func(uint64) *pipeline.Block) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.at = session, at
	for i := range n {
		hello, err := s.Hello(session, i)
		if err != nil {
			return err
		}
		s.hellos = append(s.hellos, hello)
	}
	return nil
}

// Admit reports whether a data channel that begins with a hello may come in: it is awaited,
// and is from who has the control channel.
func (s *Sink) Admit(hello []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(hello) != HelloSize {
		return false
	}
	channel := int(binary.BigEndian.Uint16(hello[4:]))
	if channel >= len(s.hellos) || len(s.hellos[channel]) == 0 || subtle.ConstantTimeCompare(s.hellos[channel], hello) != 1 {
		return false
	}
	s.hellos[channel] = nil
	return true
}

// Block is the block that a BLOCK_DONE of a data channel is about.
func (s *Sink) Block(m *rftp.Message) (*pipeline.Block, error) {
	s.mu.Lock()
	session, at := s.session, s.at
	s.mu.Unlock()
	if m.Type != rftp.BlockDone || m.Session != session {
		return nil, fmt.Errorf("data channel: found %v of session %d, expected %v of %d", m.Type, m.Session, rftp.BlockDone, session)
	}
	b := at(m.Addr)
	if b == nil {
		return nil, fmt.Errorf("data channel: found a block for address %#x, where no credit was given", m.Addr)
	}
	return b, nil
}
