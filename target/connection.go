package target

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// Why connections end, for the log and for errors.Is.
var (
	errLoggedOut  = errors.New("logged out")
	errPeerClosed = errors.New("the initiator closed the connection")
	errProtocol   = errors.New("protocol error")
	errNoData     = errors.New("no Data-Out")
	errNOPTimeout = errors.New("no answer to NOP-In: the initiator is dead or cut off")
	errStalled    = errors.New("the initiator does not take what it is sent")
	errDisplaced  = errors.New("its place is needed for an initiator that has fewer, or of which more is known")
	errPartial    = errors.New("the initiator does not end a PDU that it has begun")
	errReinstated = errors.New("the initiator logged in again")
	errShutdown   = errors.New("the server is shutting down")
	errReset      = errors.New("target reset")
	errWithdrawn  = errors.New("what the session was about is not configured any more")
	errDiverted   = errors.New("the portal is drained or redirects")
	errKicked     = errors.New("an administrator ended it")
)

// Connection is a connection in full feature phase (RFC 7143 section 4.2.4). It
// belongs to the event thread of its session, as the core does.
type Connection struct {
	*core
	cid           uint16
	local, remote netip.AddrPort
	mover         Datamover
	assist        Assistant // the same in iSER-assisted mode, else nil
	recall        *recall   // the same from ErrorRecoveryLevel 1 on, else nil
	log           *slog.Logger
	rare          rareLog // of what the initiator can bring about at will

	statSN  pdu.SN     // of the next status
	own     int        // tasks with allegiance to it
	carried lunTraffic // of a session that may have several connections
	placed  *buf.Ref   // immediate data of the command that is being received
	placing *task      // whose memory Place has named for the PDU that is being received

	header  pdu.BHS // of the PDU that is being made; the Datamover copies it
	request request // that is being acted on

	share share
	pace  pace
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
// INVARIANT: whoever posts to the thread holds the lock, so that what is
// posted after a move comes after the session's arrival.
type owner struct {
	sync.Mutex
	thread *thread
}

// maxImmediates bounds commands outside the window (RFC 7143 section 4.2.2.1
// leaves the number to the target).
const maxImmediates = 64

// newConnection makes a connection of the session; it lives from start on.
func newConnection(k *core, cid uint16, local, remote netip.AddrPort) *Connection {
	c := &Connection{core: k, cid: cid, local: local, remote: remote, rare: rareLog{most: 10}}
	c.log = k.session.logOf(c)
	c.nop.timer.Fire, c.expiry.Fire = c.checkNOP, c.expire
	return c
}

// start begins the full feature phase, on the session's thread: statSN is the
// next StatSN.
func (c *Connection) start(mover Datamover, statSN pdu.SN) {
	c.mover, c.statSN = mover, statSN
	c.assist, _ = mover.(Assistant)
	c.remember()
	c.log = c.session.logOf(c) // now the session has its TSIH
	c.core.log = c.session.log()
	if err := c.begin(); err != nil {
		c.closed = true
		c.log.Warn("connection closed as it began", "reason", err)
		c.mover.Close(err, false)
		c.loseIfIdle()
		return
	}
	if err := c.mover.Attach(c, c.thread.loop); err != nil {
		c.close(err)
	}
}

// begin readies the session; it fails when another login has replaced it already.
func (c *Connection) begin() error {
	if c.doomed != nil {
		return c.doomed
	}
	if err := c.open(); err != nil {
		return err
	}
	c.started = true
	c.thread.load.Add(1)
	c.armNOP()
	return nil
}

// abandon ends a connection whose login has failed after it was admitted.
func (c *Connection) abandon() {
	if c.mover == nil && !c.closed {
		c.closed = true
		c.loseIfIdle()
	}
}

// Stamp implements Receiver: the one place where sequence numbers of outgoing
// PDUs are set (RFC 7143 sections 4.2.2.1 and 4.2.2.2). A PDU that carries a
// status, or ends an exchange, takes a StatSN; R2T and an unsolicited NOP-In
// show the next one; a Data-In without status has none.
func (c *Connection) Stamp(bhs *pdu.BHS) {
	exp, max := c.window.Grant()
	if c.shared {
		c.publishGrant(exp, max)
	}
	bhs.SetExpCmdSN(exp)
	bhs.SetMaxCmdSN(max)
	switch bhs.Opcode() {
	case pdu.OpDataIn:
		if !(*pdu.DataIn)(bhs).HasStatus() {
			return
		}
	case pdu.OpR2T:
		bhs.SetStatSN(c.statSN)
		return
	case pdu.OpNOPIn:
		if bhs.ITT() == pdu.ReservedTag {
			bhs.SetStatSN(c.statSN)
			return
		}
	}
	bhs.SetStatSN(c.statSN)
	if c.recall != nil {
		c.recall.numbered(c.statSN)
	}
	c.statSN++
}

// Heard implements Receiver.
func (c *Connection) Heard() { c.nop.heard = c.thread.loop.Now() }

// Room implements Receiver.
func (c *Connection) Room() *Room { return c.thread.room }

// Drained implements Receiver.
func (c *Connection) Drained() {
	if c.home.next != nil {
		c.moveIfIdle()
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
	what := "session closed"
	if len(c.conns) > 1 {
		what = "connection closed"
	}
	c.log.Info(what, "reason", why)
	c.thread.loop.Disarm(&c.nop.timer)
	c.forgetHeld(c)
	c.dropPlaced()
	if c.retain(why) {
		return
	}
	c.endOwn()
	c.passFences()
	c.loseIfIdle()
}

// withdraw keeps the transport from writing to the memory of a task that is to
// end.
func (c *Connection) withdraw(t *task) {
	if c.placing == t {
		c.placing = nil
		c.mover.Withdraw()
	}
}

// taskEnded follows every end of a task.
func (c *Connection) taskEnded() {
	if len(c.leaving) > 0 {
		c.letGo()
	}
	if c.closed {
		c.loseIfIdle()
	} else if c.home.next != nil {
		c.moveIfIdle()
	}
}

// loseIfIdle ends a closed connection that has no tasks left.
func (c *Connection) loseIfIdle() {
	if c.own > 0 || c.lost && !c.spent() || !slices.Contains(c.conns, c) {
		return
	}
	if c.started {
		c.thread.load.Add(-1)
	}
	c.thread.loop.Disarm(&c.expiry)
	c.lose(c)
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

// Contain implements Receiver.
func (c *Connection) Contain() {
	if p := recover(); p != nil {
		c.panicked(p)
	}
}

// Contain implements scsi.Port.
func (t *task) Contain(*scsi.Command) {
	if p := recover(); p != nil {
		c := t.conn
		if c == nil {
			panic(p) // the command has ended: there is no session to blame
		}
		c.log.Error("panic in command: its session is closed, others go on", "panic", p, "stack", string(debug.Stack()))
		t.abandon()
		c.closeAll(fmt.Errorf("internal error: %v", p))
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
