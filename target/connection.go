package target

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/loglimit"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Why connections end, for the log and for errors.Is.
var (
	errLoggedOut  = errors.New("logged out")
	errProtocol   = errors.New("protocol error")
	errNoData     = errors.New("no Data-Out")
	errNOPTimeout = errors.New("no answer to NOP-In: the initiator is dead or cut off")
	errStalled    = errors.New("the initiator does not take its data and responses")
	errDisplaced  = errors.New("its place is needed for an initiator that has fewer, or of which more is known")
	errPartial    = errors.New("the initiator does not end a PDU that it has begun")
	errReinstated = errors.New("the initiator logged in again")
	errShutdown   = errors.New("the server is shutting down")
	errReset      = errors.New("target reset")
	errRevoked    = errors.New("the configuration does not admit the session any more")
	errDiverted   = errors.New("the portal is drained or redirects")
	errKicked     = errors.New("an administrator ended it")
)

// ErrHeaderDigest is why a transport ends whose stream cannot be followed any more (RFC
// 7143 section 7.7).
var ErrHeaderDigest = errors.New("header digest error")

// Connection is a connection in full feature phase (RFC 7143 section 4.2.4). It
// belongs to the event thread of its session, as the session's state does.
type Connection struct {
	*sessionState
	cid           uint16
	local, remote netip.AddrPort
	mover         Datamover
	assist        Assistant // the same in iSER-assisted mode, else nil
	classed       Classed   // the same, where its network knows classes, else nil
	maxDataIn     uint32    // its MaxDataIn
	recall        *recall   // the same from ErrorRecoveryLevel 1 on, else nil
	log           *slog.Logger
	rare          loglimit.Rare // of what the initiator can bring about at will

	statSN  pdu.SN     // of the next status
	own     int        // tasks with allegiance to it
	carried lunTraffic // of a session that may have several connections
	placed  *buf.Ref   // immediate data of the command that is being received
	recent  *lun       // that the last command was for
	placing *task      // whose memory Place has named for the PDU that is being received

	class  NetworkClass // that the transport was told
	pacing pacing       // of what writes are asked for

	header  pdu.BHS // of the PDU that is being made; the Datamover copies it
	request request // that is being acted on

	share share
	text  textExchange
	nop   nopState
	debts

	doomed  error    // why it is to end before it has started
	started bool     // it counts in the thread's load
	closed  bool     // the transport is gone
	ended   []func() // what follows its end, or its loss
	retention
	expiry evloop.Timer // of the retention
}

// owner tells other goroutines which thread a session belongs to.
//
// INVARIANT: a move holds the lock until the session's arrival is posted, so that
// what is posted after a move comes after it. Others do not hold the lock when they
// post: that wakes up the thread, which would wait for the lock at once.
type owner struct {
	sync.Mutex
	thread *thread
}

// maxImmediates bounds commands outside the window (RFC 7143 section 4.2.2.1
// leaves the number to the target).
const maxImmediates = 64

// newConnection makes a connection of the session; it lives from start on.
func newConnection(k *sessionState, cid uint16, local, remote netip.AddrPort) *Connection {
	c := &Connection{sessionState: k, cid: cid, local: local, remote: remote, rare: loglimit.Rare{Most: 10}}
	c.log = k.session.logOf(c)
	c.nop.timer.Fire, c.expiry.Fire, c.share.deliver, c.share.prior = c.checkNOP, c.expire, c.deliver, c.Prior
	return c
}

// Ends returns the addresses of the connection, for any goroutine.
func (c *Connection) Ends() (local, remote netip.AddrPort) { return c.local, c.remote }

// start begins the full feature phase, on the session's thread: statSN is the
// next StatSN.
func (c *Connection) start(mover Datamover, statSN pdu.SN) {
	c.mover, c.statSN = mover, statSN
	c.assist, _ = mover.(Assistant)
	c.classed, _ = mover.(Classed)
	c.maxDataIn = uint32(mover.MaxDataIn())
	c.remember()
	c.log = c.session.logOf(c) // now the session has its TSIH
	c.sessionState.log = c.session.log()
	if err := c.begin(); err != nil {
		c.closed = true
		c.log.Warn("connection closed as it began", "reason", err)
		c.mover.Close(err, false)
		c.endIfIdle()
		return
	}
	if err := c.mover.Attach(c, c.thread.loop); err != nil {
		c.close(err)
		return
	}
	c.classify()
}

// begin readies the session; it fails when another login has replaced it already.
func (c *Connection) begin() error {
	if c.doomed != nil {
		return c.doomed
	}
	c.open()
	c.started = true
	c.thread.load.Add(1)
	c.armNOP()
	return nil
}

// cancel ends a connection whose login has failed after it was admitted.
func (c *Connection) cancel() {
	if c.mover == nil && !c.closed {
		c.closed = true
		c.endIfIdle()
	}
}

// violation ends the connection because the initiator broke the protocol:
// what is lost is up to the initiator to recover (RFC 7143 section 7.8).
func (c *Connection) violation(format string, args ...any) {
	c.close(fmt.Errorf("%w: %w", errProtocol, fmt.Errorf(format, args...)))
}

// close ends the connection at once, or as soon as it starts.
func (c *Connection) close(why error) {
	switch {
	case c.mover == nil:
		c.doomed = why
	case c.lost:
		c.discard()
	case !c.closed:
		c.mover.Close(why, false)
	}
}

// drain ends the connection once what is queued has been sent.
func (c *Connection) drain(why error) {
	switch {
	case c.mover == nil:
		c.doomed = why
	case c.lost:
		c.discard()
	case !c.closed:
		c.mover.Close(why, true)
	}
}

// Closed implements Receiver: the connection's tasks are ended as a lost nexus ends
// them (SAM-5 clause 6.3.4), unless they are retained, and when the last one is gone, the
// connection has ended, and with the last connection the session. Requests of it that wait for
// others are forgotten: what was not acknowledged, the initiator sends again on
// another connection (RFC 7143 section 7.2.1).
func (c *Connection) Closed(why error) {
	if c.closed {
		return
	}
	c.closed = true
	if errors.Is(why, ErrHeaderDigest) {
		c.thread.incidents.headerDigests.Add(1)
	}
	what := "session closed"
	if len(c.conns) > 1 {
		what = "connection closed"
	}
	c.log.Info(what, "reason", why)
	c.thread.loop.Disarm(&c.nop.timer)
	c.discardEarly(c)
	c.releasePlaced()
	if c.retain(why) {
		return
	}
	c.endOwn()
	c.passFences()
	c.endIfIdle()
}

// endIfIdle ends a closed connection that has no tasks left.
func (c *Connection) endIfIdle() {
	if c.own > 0 || c.lost && !c.spent() || !slices.Contains(c.conns, c) {
		return
	}
	if c.started {
		c.thread.load.Add(-1)
	}
	c.thread.loop.Disarm(&c.expiry)
	c.removeEnded(c)
	c.hasEnded()
}

// hasEnded does what has waited for the connection's end.
func (c *Connection) hasEnded() {
	ended := c.ended
	c.ended = nil
	for _, f := range ended {
		f()
	}
}

// Wake implements scsi.Port. The thread does not change while the task lives: a
// session moves only when it has none.
func (t *task) Wake(cmd *scsi.Command, work scsi.Task) {
	t.conn.thread.loop.Post(evloop.Func(func() {
		defer t.Contain(cmd)
		work.Run()
	}))
}

// Turn implements scsi.Port.
func (t *task) Turn(*scsi.Command) int64 {
	th := t.conn.thread
	th.gate.serve(t.lun.queue)
	return int64(th.loop.Part())
}

// Within implements scsi.Port.
func (t *task) Within(_ *scsi.Command, n int64, work scsi.Task) bool {
	return t.conn.thread.moves.take(n, work)
}

// Again implements scsi.Port.
func (t *task) Again(_ *scsi.Command, work scsi.Task) { t.conn.thread.loop.Again(work) }

// now returns the thread; the session may leave it at any time.
func (o *owner) now() *thread {
	o.Lock()
	defer o.Unlock()
	return o.thread
}
