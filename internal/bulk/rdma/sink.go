package rdma

import (
	"errors"
	"net"

	"lunar/internal/bulk/keyed"
	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
	"lunar/iser/verbs"
)

// Sink is the link of the side that stores.
type Sink struct {
	*keyed.Sink
	control *wire
	blocks  int      // of the pool; of the engine's goroutine, as what follows
	region  verbs.MR // of the pool; nil: it is not exposed
	wires   []*wire  // data channels
	closed  bool
}

// Expose implements bulk.SinkLink. Addresses are those of the pool's memory.
func (s *Sink) Expose(session uint32, n int, pool *pipeline.Pool, lead, _ int, at func(uint64) *pipeline.Block) (base uint64, rkey uint32, err error) {
	err = s.control.engine.do(func() (err error) {
		if s.closed || s.control.isOver() {
			return net.ErrClosed
		}
		s.blocks = len(pool.Blocks)
		if s.region, err = s.control.card.register(pool.Bytes(), verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err == nil {
			rkey = s.region.RKey()
			s.Users.Add(1)
		}
		return err
	})
	if err == nil {
		err = s.Await(session, n, at)
	}
	return verbs.Addr(pool.Bytes()) + uint64(lead), rkey, err
}

// join takes a data channel whose hello has the right token.
func (s *Sink) join(id verbs.ID, hello []byte) error {
	if s.closed || s.region == nil || id.Device() != s.control.card.device || !s.Admit(hello) {
		return errors.New("found a data channel of nobody")
	}
	i := &inlet{sink: s}
	// A block that has arrived is another one's only when its message was taken, and posted
	// again: more receives than blocks are never wanted.
	if _, err := s.control.engine.wire(id, i, shape{slots: s.blocks + 1, slot: blockDone, entries: 1}); err != nil {
		return err
	}
	if err := id.Accept(connParam()); err != nil {
		i.wire.end(err)
		return nil
	}
	s.wires = append(s.wires, i.wire)
	return nil
}

// inlet is a data channel.
type inlet struct {
	wire *wire
	sink *Sink
}

// attach implements user.
func (i *inlet) attach(w *wire) { i.wire = w }

// arrived implements user.
func (i *inlet) arrived(message []byte) {
	m, err := rftp.Parse(message)
	if err == nil {
		_, err = i.sink.Block(&m)
	}
	if !i.sink.Offer(m, err) {
		i.wire.end(errors.New("RDMA: the sender sends what it may not send"))
	}
}

// beat implements user: the control channel notices who is gone.
func (i *inlet) beat() {}

// sent implements user: nothing goes this way.
func (i *inlet) sent(uint64) {}

// ended implements user: the control channel tells.
func (i *inlet) ended(error) {}

// Close implements bulk.Link.
func (s *Sink) Close() error {
	err := s.Sink.Close()
	s.control.engine.order(func() {
		if s.closed {
			return
		}
		s.closed = true
		for _, w := range s.wires {
			w.end(net.ErrClosed)
		}
		if s.region != nil {
			_ = s.control.card.release(s.region) // nothing is left to do about it
			s.Users.Done()
		}
	})
	return err
}
