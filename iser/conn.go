package iser

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target"
)

// Why connections end.
var (
	errPeerClosed = errors.New("the initiator disconnected")
	errRemoved    = errors.New("the RDMA device is being removed")
	errProtocol   = errors.New("iSER protocol error")
)

const (
	// drainTime bounds how long a closing connection may take to send what is
	// queued, flushTime how long its device may take to flush the send queue
	// afterwards.
	drainTime = 5 * time.Second
	flushTime = 10 * time.Second
	// receiveTime is how long the receives may take when nothing of the send queue
	// is left. One that was posted after the queue pair had failed, which nobody
	// knew yet, never comes back from some devices (rxe), but at its end.
	receiveTime = 100 * time.Millisecond
	// slack is how many receives are posted beyond the command window: for
	// NOPs, task management and other immediate PDUs.
	slack = 32
	// discoveryWindow is the command window of a discovery session as far as
	// receives go; who sends more waits.
	discoveryWindow = 16
)

// conn is one connection over RDMA and, after the login, the Datamover
// (target.Assistant). All of it but login belongs to the event thread.
type conn struct {
	owner  owner
	group  *pollGroup
	queue  *queue
	log    *slog.Logger
	id     verbs.ID
	qp     verbs.QP
	number uint32 // of the queue pair

	local, remote netip.AddrPort
	window        int  // commands that the queue pair is made for
	depth         int  // RDMA Reads that may be outstanding
	normal        bool // no discovery session
	mayInvalidate bool // the initiator takes Send with Invalidate
	corrected     bool // a claim of immediate data has been taken back
	index         int  // in the poll group
	reserved      int  // of the queue's room

	login loginState
	rx    receiver
	tx    sender
	tags  *tags
	gov   *governor // nil: nothing bounds what is posted

	loop     *evloop.Loop
	r        target.Receiver // nil until Attach
	attached bool            // early messages have been delivered
	early    evloop.Task

	why      error  // the end, once it is decided
	qpGone   bool   // the control goroutine has destroyed the queue pair
	draining bool   // what is queued is still sent
	ending   bool   // nothing more is posted
	hurried  bool   // only receives are waited for
	prepares bool   // Prepare is getting memory for it
	closed   bool   // the device has nothing of it any more
	asked    uint64 // in which LookAhead it was last asked
	ahead    bool   // its answer
	told     bool   // Receiver.Closed was called
	timer    evloop.Timer
}

// owner takes away what connections consist of, on a goroutine that may block. Nobody
// waits for it.
type owner interface {
	// disconnect has the queue pair flushed.
	disconnect(*conn)
	// destroyQP takes back by force what the queue pair has; then follows on the event
	// thread.
	destroyQP(c *conn, then func())
	// destroy frees a connection of which the device has nothing any more.
	destroy(*conn)
}

// newConn prepares a connection's state; control.build makes its queue pair. invalidate
// is Config.Invalidate.
func newConn(o owner, s *pollGroup, e *verbs.Event, log *slog.Logger, invalidate bool) *conn {
	c := &conn{
		owner: o, group: s, loop: s.loop, id: e.ID, local: e.Local, remote: e.Peer,
		log: log.With("address", e.Peer.String(), "device", s.device.name),
	}
	caps := s.device.verbs.Caps()
	c.depth = min(int(e.InitiatorDepth), caps.MaxInitiatorDepth, maxReads)
	c.mayInvalidate = invalidate && caps.MemoryManagement && e.Private[0]&privateNoInvalidate == 0
	c.login.init()
	c.tx.flush = evloop.Func(c.flushAtEnd)
	c.early = evloop.Func(c.deliverEarly)
	c.timer.Fire = c.timeUp
	return c
}

// maxReads bounds the RDMA Reads of a connection under way: more would not be
// faster, but stand in front of its responses.
const maxReads = 32

// Attach implements target.Datamover.
func (c *conn) Attach(r target.Receiver, _ *evloop.Loop) error {
	c.r = r
	if c.why != nil {
		return c.why
	}
	c.loop.Again(c.early)
	return nil
}

// deliverEarly follows Attach: what came before it, in order.
func (c *conn) deliverEarly() {
	if c.r != nil {
		defer c.r.Contain()
	}
	c.attached = true
	for _, m := range c.login.take() {
		c.received(m.slot, m.length)
	}
}

// Detach implements target.Datamover: a queue pair stays with its completion
// queue.
func (c *conn) Detach() bool { return false }

// Revoke implements target.Datamover: no data segment is ever placed while it
// arrives.
func (c *conn) Revoke() {}

// MaxDataIn implements target.Datamover: as much as the header can tell.
func (c *conn) MaxDataIn() int { return 1<<24 - 1 }

// completed takes a completion of the connection's queue pair.
func (c *conn) completed(wc *verbs.WC, id workID) {
	if c.r != nil {
		defer c.r.Contain()
	}
	if wc.Status != verbs.StatusOK {
		c.failed(wc, id)
		return
	}
	if id.receive() {
		c.group.count.receives.Add(1)
		c.rx.posted--
		c.arrived(id.low(), int(wc.Len))
		return
	}
	c.sent(id.low())
}

// failed takes a completion that is no success: the queue pair has failed, and all
// that was posted comes back like this one.
func (c *conn) failed(wc *verbs.WC, id workID) {
	if id.receive() {
		c.rx.posted--
	} else {
		c.retire(id.low(), false)
	}
	if !c.ending {
		why := errPeerClosed
		if wc.Status != verbs.StatusFlushed {
			c.group.count.failures.Add(1)
			why = fmt.Errorf("%s failed: %s", c.what(id), wc.Status)
		}
		c.lost(why)
	}
	c.endIfFlushed()
}

// what names the work of a completion.
func (c *conn) what(id workID) string {
	if id.receive() {
		return "receive"
	}
	return c.tx.at(id.low()).kind.String()
}

// Close implements target.Datamover.
func (c *conn) Close(why error, drain bool) {
	if c.why == nil {
		c.why = why
	}
	if c.closed { // before the receiver had come
		c.tell()
	}
	if c.ending || c.draining && drain {
		return
	}
	if drain && c.tx.pending() {
		c.draining = true
		c.tx.discardFetches() // their tasks have ended
		c.loop.Disarm(&c.timer)
		c.loop.Arm(&c.timer, drainTime)
		c.schedule()
		return
	}
	c.end()
}

// lost ends the connection at once.
func (c *conn) lost(why error) { c.Close(why, false) }

// end gives up what is not posted and has the rest flushed.
func (c *conn) end() {
	if c.ending {
		return
	}
	c.ending, c.draining = true, false
	if c.gov != nil {
		c.gov.end()
		c.gov = nil
	}
	c.tx.discard()
	c.login.fail(c.why)
	c.loop.Disarm(&c.timer)
	c.loop.Arm(&c.timer, flushTime)
	c.owner.disconnect(c)
	c.endIfFlushed()
}

// timeUp is the timer: of waiting for memory, of draining, and of flushing.
func (c *conn) timeUp() {
	if c.r != nil {
		defer c.r.Contain()
	}
	switch {
	case c.closed:
	case c.draining:
		c.end()
	case !c.ending: // there may be memory by now
		c.schedule()
	default:
		if c.tx.outstanding() > 0 {
			c.log.Warn("the RDMA device has not completed all posted work: the queue pair is destroyed", "receives", c.rx.posted, "sends", c.tx.outstanding())
		}
		c.owner.destroyQP(c, func() {
			c.rx.posted = 0
			c.retireAll()
			c.endIfFlushed()
		})
	}
}

// endIfFlushed ends the connection once the device has nothing of it any more.
func (c *conn) endIfFlushed() {
	if !c.ending || c.closed || c.prepares || c.tx.outstanding() > 0 {
		return
	}
	if c.rx.posted > 0 {
		c.hurry()
		return
	}
	c.closed = true
	c.loop.Disarm(&c.timer)
	c.owner.destroy(c)
	c.tell()
}

// tell tells the receiver of the end, if there is one yet.
func (c *conn) tell() {
	if c.r != nil && !c.told {
		c.told = true
		c.r.Closed(c.why)
	}
}

// hurry bounds the wait for receives: the end of the queue pair gives them back as
// well.
func (c *conn) hurry() {
	if c.hurried {
		return
	}
	c.hurried = true
	c.loop.Disarm(&c.timer)
	c.loop.Arm(&c.timer, receiveTime)
}

// Owed implements target.Debtor: RDMA Reads count as what the initiator is to take,
// and messages come as a whole.
func (c *conn) Owed() target.Owed {
	return target.Owed{Untaken: c.tx.outstanding() > 0, Taken: c.tx.done}
}
