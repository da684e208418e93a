package iser

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target/bottleneck"
)

const (
	// lookMost is how many completions one look takes at once.
	lookMost = 64
	// looksPerPass bounds the looks into one queue in one pass, for fairness.
	looksPerPass = 8
	// queueSize is how many completions a queue has room for, if the device
	// has that many: enough for some dozens of connections.
	queueSize = 16 << 10
	// workMost is how many entries one list of work has.
	workMost = 256
)

// pollGroup is what the connections of one event thread on one device share: the
// completion channel, the completion queues, and scratch memory. All of it but
// the counters belongs to the thread.
type pollGroup struct {
	device *device
	links  *bottleneck.Links
	loop   *evloop.Loop
	ch     verbs.CompChannel
	queues []*queue
	conns  []*conn // by index; nil: free

	come  arrivals
	looks uint64  // of LookAhead
	ahead []*conn // whom the last one has served
	wrs   [workMost]verbs.WR
	sges  [workMost]verbs.SGE
	ids   [workMost]uint64
	count counters

	corrected time.Time // when it was last logged that an initiator announces what it does not send
}

// queue is a completion queue with the room that is promised to connections.
type queue struct {
	cq       verbs.CQ
	room     int
	armed    bool
	reported bool
}

// arrivals are completions that have come and are to be dealt with, from head to tail.
type arrivals struct {
	wcs        [looksPerPass * lookMost]verbs.WC
	head, tail int
}

// room is where the next look's go: none if too many wait.
func (b *arrivals) room() []verbs.WC {
	if b.head == b.tail {
		b.head, b.tail = 0, 0
	}
	return b.wcs[b.tail:min(b.tail+lookMost, len(b.wcs))]
}

// next is the one that is dealt with next, or nil.
func (b *arrivals) next() *verbs.WC {
	if b.head < b.tail {
		return &b.wcs[b.head]
	}
	return nil
}

// newPollGroup opens the channel; the caller is on the thread.
func newPollGroup(d *device, loop *evloop.Loop) (*pollGroup, error) {
	ch, err := d.verbs.OpenCompletions()
	if err != nil {
		return nil, err
	}
	s := &pollGroup{device: d, links: d.links, loop: loop, ch: ch}
	if err := loop.Register(ch.FD(), unix.EPOLLIN, s); err != nil {
		return nil, errors.Join(err, ch.Destroy())
	}
	loop.AddSource(s)
	return s, nil
}

// reserve returns a queue with room for n completions.
func (s *pollGroup) reserve(n int) (*queue, error) {
	for _, q := range s.queues {
		if q.room >= n && !q.reported {
			q.room -= n
			return q, nil
		}
	}
	caps := s.device.verbs.Caps()
	size := min(queueSize, caps.MaxCQE)
	if n > size {
		return nil, fmt.Errorf("the device's completion queues have room for %d, expected %d: lower limits.queue-depth", size, n)
	}
	cq, err := s.device.verbs.CreateCQ(size, s.ch, max(s.loop.CPU(), 0)%max(caps.CompVectors, 1))
	if err != nil {
		return nil, err
	}
	q := &queue{cq: cq, room: cq.Size() - n}
	s.queues = append(s.queues, q)
	return q, nil
}

// add gives a connection its index.
func (s *pollGroup) add(c *conn) {
	c.index = slices.Index(s.conns, nil)
	if c.index < 0 {
		c.index = len(s.conns)
		s.conns = append(s.conns, nil)
	}
	s.conns[c.index] = c
	s.count.live.Add(1)
}

// remove forgets a connection whose queue pair is gone.
func (s *pollGroup) remove(c *conn) {
	s.conns[c.index] = nil
	c.queue.room += c.reserved
	s.count.live.Add(-1)
}

// Ready implements evloop.Poller: a queue that was armed has something.
func (s *pollGroup) Ready(uint32) {
	if _, err := s.ch.Drain(); err != nil {
		s.device.log.Error("completion channel failed", "device", s.device.name, "error", err)
	}
	for _, q := range s.queues {
		q.armed = false
	}
}

// Look implements evloop.Source.
func (s *pollGroup) Look() (work int) {
	work = s.handle()
	for _, q := range s.queues {
		for range looksPerPass {
			n := s.poll(q)
			work += s.handle()
			if n == 0 { // not before: more comes while some is dealt with
				break
			}
		}
	}
	return work
}

// poll takes up to lookMost completions of a queue.
func (s *pollGroup) poll(q *queue) int {
	n, err := q.cq.Poll(s.come.room())
	if err != nil {
		s.broken(q, err)
		return 0
	}
	if n > 0 {
		s.come.tail += n
		s.count.polls.Add(1)
	}
	return n
}

// handle deals with what has come. In between others may go first, see LookAhead.
func (s *pollGroup) handle() (work int) {
	for ; s.come.head < s.come.tail; work++ {
		wc := s.come.wcs[s.come.head]
		s.come.head++
		if c := s.owner(&wc); c != nil {
			c.completed(&wc, workID(wc.ID))
			if s.loop.Ordered() && c.r != nil && c.r.Promised() && s.owner(s.come.next()) != c {
				c.flushNow()
			}
		}
		s.loop.Yield()
	}
	return work
}

// LookAhead implements evloop.PriorSource. What came for a connection stays in order:
// each is asked once.
func (s *pollGroup) LookAhead() {
	for _, q := range s.queues {
		s.poll(q)
	}
	s.looks++
	for i := s.come.head; i < s.come.tail; i++ {
		wc := s.come.wcs[i]
		c := s.owner(&wc)
		if c == nil || !c.isAhead(s.looks) {
			continue
		}
		s.come.wcs[i] = verbs.WC{} // nobody's
		c.completed(&wc, workID(wc.ID))
	}
	for i, c := range s.ahead {
		c.flushNow()
		s.ahead[i] = nil
	}
	s.ahead = s.ahead[:0]
}

// isAhead reports whether the connection goes first in this look.
func (c *conn) isAhead(look uint64) bool {
	if c.asked != look {
		c.asked, c.ahead = look, c.r != nil && c.r.Prior()
		if c.ahead {
			c.group.ahead = append(c.group.ahead, c)
		}
	}
	return c.ahead
}

// flushNow lets what the connection is answered leave before the end of the pass.
func (c *conn) flushNow() {
	if c.tx.scheduled && !c.closed {
		c.flushAtEnd()
	}
}

// owner returns the connection of a completion. One of a queue pair that is gone, or
// nil, has none.
func (s *pollGroup) owner(wc *verbs.WC) *conn {
	if wc == nil {
		return nil
	}
	if at := workID(wc.ID).index(); at < len(s.conns) {
		if c := s.conns[at]; c != nil && !c.closed && c.number == wc.QP {
			return c
		}
	}
	return nil
}

// broken ends all connections of a queue that can no longer be polled.
func (s *pollGroup) broken(q *queue, err error) {
	if q.reported {
		return
	}
	q.reported = true
	s.device.log.Error("completion queue failed: its connections are closed", "device", s.device.name, "thread", s.loop.Name(), "error", err)
	for _, c := range s.conns {
		if c != nil && c.queue == q {
			c.lost(fmt.Errorf("completion queue failed: %w", err))
		}
	}
}

// Sleep implements evloop.Source: what arrives from now on makes the channel
// readable; what has arrived before does not, so it is looked for once more.
func (s *pollGroup) Sleep() (came bool) {
	if s.come.next() != nil { // LookAhead has left it
		return true
	}
	for _, q := range s.queues {
		if !q.armed {
			if err := q.cq.Arm(); err != nil {
				s.broken(q, err)
				continue
			}
			q.armed = true
			s.count.arms.Add(1)
		}
		if s.poll(q) > 0 {
			return true // the others are looked at in the pass that follows
		}
	}
	return false
}

// close frees the channel and its queues; no connection is left. The caller is on
// the thread.
func (s *pollGroup) close() error {
	s.loop.RemoveSource(s)
	errs := []error{s.loop.Unregister(s.ch.FD())}
	for _, q := range s.queues {
		if _, err := s.ch.Drain(); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, q.cq.Destroy())
	}
	s.queues = nil
	return errors.Join(append(errs, s.ch.Destroy())...)
}

// workID is the id of a work request:
//
//	63      1: a receive, 0: of the send queue
//	32..62  index of the connection in its poll group
//	0..31   slot of the receive, or position in the send queue
type workID uint64

const receiveBit = 1 << 63

func (id workID) index() int    { return int(id &^ receiveBit >> 32) }
func (id workID) low() uint32   { return uint32(id) }
func (id workID) receive() bool { return id&receiveBit != 0 }

func (c *conn) receiveID(slot uint32) uint64 { return receiveBit | uint64(c.index)<<32 | uint64(slot) }
func (c *conn) sendID(at uint32) uint64      { return uint64(c.index)<<32 | uint64(at) }
