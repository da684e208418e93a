package rdma

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"lunar/internal/arena"
	"lunar/iser/verbs"
)

// user is who has a wire. The engine calls it, one call at a time; it may not wait.
type user interface {
	attach(*wire) // before all others
	arrived(message []byte)
	// sent tells that an entry with an id other than 0 was carried out.
	sent(id uint64)
	beat() // at each beatInterval
	// ended tells that there is no connection any more, and that the device uses no memory of
	// it. No other call follows.
	ended(why error)
}

// shape is how a wire is made.
type shape struct {
	slots   int // receives, and places for messages that are sent
	slot    int // bytes of each
	entries int // of the send queue
	inline  int // bytes
}

// wire is a connection with memory for messages.
type wire struct {
	engine *engine
	card   *card
	id     verbs.ID
	user   user
	shape
	memory *arena.Arena // slots of receives, and behind them those of sends
	region verbs.MR
	up     chan struct{} // closed when messages may be sent
	over   chan struct{} // closed when it has ended
	isOpen bool          // up is closed
	ends   bool          // as soon as everything is sent

	mu    sync.Mutex
	qp    verbs.QP // nil: it has ended
	under int      // signaled sends that are posted
	why   error    // it has ended
}

// receiving marks the ids of receives.
const receiving = 1 << 32

// wire makes that of an id, on whose device it has a queue pair then. After an error the id is
// the caller's.
func (e *engine) wire(id verbs.ID, u user, s shape) (w *wire, err error) {
	c, err := e.card(id.Device())
	if err != nil {
		return nil, err
	}
	if c.posts+s.slots+s.entries > c.queue.Size() {
		return nil, fmt.Errorf("RDMA device %s: found too many connections", c.device.Name())
	}
	w = &wire{engine: e, card: c, id: id, user: u, shape: s, up: make(chan struct{}), over: make(chan struct{})}
	if w.memory, err = arena.Open(arena.Options{Bytes: int64(2 * s.slots * s.slot), Node: -1, Threads: 1}); err != nil {
		return nil, err
	}
	if w.region, err = c.register(w.memory.Bytes(), verbs.AccessLocalWrite); err != nil {
		return nil, errors.Join(err, w.memory.Close())
	}
	w.qp, err = id.CreateQP(c.domain, c.queue, verbs.QPLimits{SendWR: s.entries, RecvWR: s.slots, SendSGE: 1, Inline: s.inline})
	for i := 0; err == nil && i < s.slots; i++ {
		err = w.receive(i)
	}
	if err != nil {
		if w.qp != nil {
			err = errors.Join(err, w.qp.Destroy())
		}
		return nil, errors.Join(err, c.release(w.region), w.memory.Close())
	}
	c.posts += s.slots + s.entries
	c.wires[w.qp.Number()], e.wires[id] = w, w
	u.attach(w)
	return w, nil
}

// place is the memory of a slot; those of sends are behind those of receives.
func (w *wire) place(slot int) []byte { return w.memory.Bytes()[slot*w.slot:][:w.slot] }

// receive posts a slot.
func (w *wire) receive(slot int) error {
	_, err := w.qp.PostRecv([]uint64{receiving | uint64(slot)}, []verbs.SGE{w.part(slot, w.slot)})
	return err
}

// part is the first n bytes of a slot.
func (w *wire) part(slot, n int) verbs.SGE {
	return verbs.SGE{Addr: verbs.Addr(w.place(slot)), Len: uint32(n), LKey: w.region.LKey()}
}

// post queues entries, of which the last one is signaled.
func (w *wire) post(wrs []verbs.WR, sges []verbs.SGE) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.qp == nil {
		return net.ErrClosed
	}
	_, err := w.qp.PostSend(wrs, sges)
	if err == nil {
		w.under++
	}
	return err
}

// completed takes a completion.
func (w *wire) completed(c *verbs.WC) {
	switch {
	case c.Status != verbs.StatusOK:
		w.end(fmt.Errorf("RDMA: %v", c.Status))
	case c.ID&receiving != 0:
		slot := int(c.ID &^ receiving)
		message := bytes.Clone(w.place(slot)[:c.Len])
		w.mu.Lock()
		err := w.receive(slot)
		w.mu.Unlock()
		if err != nil {
			w.end(err)
			return
		}
		w.user.arrived(message)
	case c.ID != 0:
		w.mu.Lock()
		w.under--
		idle := w.under == 0
		w.mu.Unlock()
		w.user.sent(c.ID)
		if idle && w.ends {
			w.end(net.ErrClosed)
		}
	}
}

func (w *wire) isUp() {
	if !w.isOpen {
		w.isOpen = true
		close(w.up)
	}
}

// goodbyeTime is how long what is posted may take before a wire ends.
const goodbyeTime = time.Second

// finish ends it, for the engine, when everything is sent that is posted, and in bounded time.
func (w *wire) finish() {
	w.engine.order(func() {
		w.mu.Lock()
		idle := w.under == 0
		w.mu.Unlock()
		if idle {
			w.end(net.ErrClosed)
			return
		}
		w.ends = true
		time.AfterFunc(goodbyeTime, func() { w.engine.order(func() { w.end(net.ErrClosed) }) })
	})
}

// end destroys it, once. What was posted is not carried out any more.
func (w *wire) end(why error) {
	w.mu.Lock()
	qp := w.qp
	w.qp = nil
	if qp != nil {
		w.why = why
	}
	w.mu.Unlock()
	if qp == nil {
		return
	}
	// After an error nothing is left to do about what is destroyed.
	_ = w.id.Disconnect()
	delete(w.card.wires, qp.Number())
	delete(w.engine.wires, w.id)
	w.card.posts -= w.slots + w.entries
	_ = qp.Destroy()
	_ = w.id.Destroy()
	_ = w.card.release(w.region)
	w.user.ended(why)
	_ = w.memory.Close() // whose user writes messages until it has heard that
	close(w.over)
}

// isOver reports whether it has ended, to the engine.
func (w *wire) isOver() bool { return w.engine.wires[w.id] != w }

// failure is why it has ended.
func (w *wire) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}
