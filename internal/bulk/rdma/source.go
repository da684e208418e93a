package rdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"lunar/internal/bulk/keyed"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
	"lunar/iser/verbs"
)

// What the private data of a connection request begin with. Behind dataChannel follows the
// hello.
const (
	controlChannel = 'C'
	dataChannel    = 'D'
)

// connParam are those of all connections: nobody reads, and who has no receive is waited for,
// which does not happen between two who keep to the rules.
func connParam(private ...byte) verbs.ConnParam {
	return verbs.ConnParam{RNRRetry: 7, Retry: 7, Private: private}
}

// Source is the link of the side that sends.
type Source struct {
	*keyed.Control
	engine *engine
	to     netip.AddrPort
	ended  chan written
	next   int // of wires
	closed bool
	wires  []*outlet // the engine's until Open has returned; then nothing changes them
	region verbs.MR  // of the pool
	card   *card
}

// written is a block that has ended.
type written struct {
	done func(error)
	err  error
}

// Dial connects to who receives at an address, with the one-time key of both. The provider is
// closed with the link, or after an error.
func Dial(ctx context.Context, p verbs.Provider, to netip.AddrPort, key keyed.Key) (*Source, error) {
	e, err := start(p)
	if err != nil {
		return nil, err
	}
	s := &Source{engine: e, to: to}
	raw := newStream()
	if err = s.connect(ctx, raw, streamShape, controlChannel); err == nil {
		if s.Control, err = keyed.Client(ctx, raw, key); err != nil {
			_ = raw.Close()
		}
	}
	if err != nil {
		e.finish()
		<-e.ended
		return nil, fmt.Errorf("rdma://%s: %w", to, err)
	}
	return s, nil
}

// connect makes a connection.
func (s *Source) connect(ctx context.Context, u user, how shape, private ...byte) error {
	var w *wire
	err := s.engine.do(func() error {
		if s.closed {
			return net.ErrClosed
		}
		id, err := s.engine.resolve(s.to)
		if err != nil {
			return err
		}
		if w, err = s.engine.wire(id, u, how); err != nil {
			return errors.Join(err, id.Destroy())
		}
		if err := id.Connect(connParam(private...)); err != nil {
			w.end(err)
			return err
		}
		if o, ok := u.(*outlet); ok {
			s.wires = append(s.wires, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	select {
	case <-w.up:
		return nil
	case <-w.over:
		return w.failure()
	case <-ctx.Done():
		w.finish()
		return ctx.Err()
	}
}

// Ordered implements bulk.SourceLink.
func (s *Source) Ordered() bool { return true }

// outlet is a data channel.
type outlet struct {
	wire    *wire
	results chan<- written

	mu    sync.Mutex
	under map[uint64]func(error) // by id of the entry
	last  uint64                 // id
	buf   [blockDone]byte
	why   error
}

// blockDone is the length of a BLOCK_DONE.
const blockDone = rftp.HeadSize + 16

// Open implements bulk.SourceLink.
func (s *Source) Open(session uint32, n int, pool *pipeline.Pool) error {
	s.ended = make(chan written, 2*len(pool.Blocks))
	for i := range n {
		hello, err := s.Hello(session, i)
		if err != nil {
			return err
		}
		o := &outlet{results: s.ended, under: map[uint64]func(error){}}
		shape := shape{slots: 1, slot: blockDone, entries: 2 * len(pool.Blocks), inline: blockDone}
		ctx, cancel := context.WithTimeout(context.Background(), keyed.HandshakeTime)
		err = s.connect(ctx, o, shape, append([]byte{dataChannel}, hello...)...)
		cancel()
		if err != nil {
			return err
		}
	}
	if err := s.engine.do(func() (err error) { return s.expose(pool) }); err != nil {
		return err
	}
	s.Users.Add(1)
	go s.tell()
	return nil
}

// expose lets the device read the pool.
func (s *Source) expose(pool *pipeline.Pool) (err error) {
	s.card = s.wires[0].wire.card
	for _, o := range s.wires {
		switch {
		case s.closed || o.wire.isOver():
			return net.ErrClosed
		case o.wire.card != s.card:
			return errors.New("found two RDMA devices on the way to one address")
		}
	}
	if s.region, err = s.card.register(pool.Bytes(), 0); err == nil {
		s.Users.Add(1)
	}
	return err
}

// tell tells who sends how blocks have ended.
func (s *Source) tell() {
	defer s.Users.Done()
	for {
		select {
		case r := <-s.ended:
			r.done(r.err)
		case <-s.Closed():
			return
		}
	}
}

// Write implements bulk.SourceLink. Calls come one at a time.
func (s *Source) Write(b *pipeline.Block, frame []byte, c rftp.Credit, done func(error)) {
	o := s.wires[s.next%len(s.wires)]
	s.next++
	m := rftp.Message{Type: rftp.BlockDone, Session: b.Session, Sequence: b.Sequence, Addr: c.Addr}
	o.write(&m, frame, s.region.LKey(), c, done)
}

// write writes a block, and its BLOCK_DONE behind it.
func (o *outlet) write(m *rftp.Message, frame []byte, key uint32, c rftp.Credit, done func(error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.why
	if err == nil {
		o.last++
		message := m.Append(o.buf[:0])
		err = o.wire.post(
			[]verbs.WR{
				{Op: verbs.OpWrite, RAddr: c.Addr, RKey: c.RKey, NSGE: 1},
				{ID: o.last, Op: verbs.OpSend, Flags: verbs.FlagSignaled | verbs.FlagInline, NSGE: 1},
			},
			[]verbs.SGE{{Addr: verbs.Addr(frame), Len: uint32(len(frame)), LKey: key}, {Addr: verbs.Addr(message), Len: uint32(len(message))}})
	}
	if err != nil {
		o.results <- written{done, err} // which has room for all blocks
		return
	}
	o.under[o.last] = done
}

// attach implements user.
func (o *outlet) attach(w *wire) { o.wire = w }

// arrived implements user: nothing comes this way.
func (o *outlet) arrived([]byte) {
	o.wire.end(errors.New("RDMA: the receiver sends what it may not send"))
}

// beat implements user: the control channel notices who is gone.
func (o *outlet) beat() {}

// sent implements user.
func (o *outlet) sent(id uint64) {
	o.mu.Lock()
	done := o.under[id]
	delete(o.under, id)
	o.mu.Unlock()
	o.results <- written{done, nil}
}

// ended implements user.
func (o *outlet) ended(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = why
	for id, done := range o.under {
		delete(o.under, id)
		o.results <- written{done, why}
	}
}

// Close implements bulk.Link. Of what is under way nobody hears.
func (s *Source) Close() error {
	err := s.Control.Close()
	s.engine.order(func() {
		if s.closed {
			return
		}
		s.closed = true
		for _, o := range s.wires {
			o.wire.end(net.ErrClosed)
		}
		if s.region != nil {
			_ = s.card.release(s.region) // nothing is left to do about it
			s.Users.Done()
		}
	})
	s.engine.finish()
	return err
}

// Wait implements bulk.Link.
func (s *Source) Wait() {
	s.Control.Wait()
	<-s.engine.ended
}
