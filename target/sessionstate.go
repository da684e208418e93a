package target

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// sessionState is what all connections of a session share and the data path changes: the
// command order, the tasks and the LUNs. All of it belongs to the event thread on
// which all connections of the session are, so that none of it needs a lock and a
// session of one connection pays nothing for that there may be more. StatSN, what is
// sent, and the allegiance of tasks are each Connection's (RFC 7143 sections
// 4.2.2.2 and 4.2.5.1).
type sessionState struct {
	session *Session
	thread  *thread
	owner   owner
	log     *slog.Logger
	conns   []*Connection // that have not ended; also those in login that will join
	shown   atomic.Pointer[[]shownConnection]

	window   CmdWindow
	trace    *pduRing       // of its PDUs, mostly nil
	early    []earlyRequest // came before a command that is missing
	stashed  int            // bytes kept for requests, see maxStashed
	tasks    taskTable
	luns     []*lun              // by LUN number while small, see findLUN
	unmapped []*lun              // that are not mapped any more and have tasks
	devices  []*scheduler.Device // that its LUNs are on
	nowhere  *scsi.Nexus         // for commands to LUNs that are not mapped
	nextTTT  uint32
	fences   []*taskManagement // that wait for connections to say that they have what was sent
	answers  uint64            // responses kept by all connections so far (recall.go)

	live       int               // tasks that exist, listed or not
	immediates int               // of them, those outside the window
	functions  []*taskManagement // under way
	executing  *task             // in Execute
	calling    *task             // whose command runs right now, to blame for a panic
	quota                        // of the thread's buffers
	waiters    taskQueue         // tasks that wait for memory
	starved    bool              // is in the thread's list of sessions with waiters

	migration migration
	traffic   *traffic // for anyone to read

	shared  bool          // it may have several connections
	granted atomic.Uint64 // if shared: ExpCmdSN and MaxCmdSN as last sent, for logins
	opened  bool          // the LUNs are open

	leadingCID      uint16 // of the connection that the session began with
	logoutRequested bool   // the initiator was asked to log out: nothing is retained for it
	ending          bool   // all connections are to end
	finished        bool   // nothing of the session is left
}

// newSessionState makes the thread's part of a session whose first command will carry
// cmdSN.
func newSessionState(s *Session, th *thread, cmdSN pdu.SN, cid uint16) *sessionState {
	depth := s.settings.Limits.QueueDepth
	c := &sessionState{
		session: s, thread: th, log: s.log(), tasks: newTaskTable(depth + maxImmediates),
		window: NewCmdWindow(cmdSN, uint32(depth)), traffic: newTraffic(), leadingCID: cid, shared: s.params.MaxConnections > 1 || s.recovers(),
	}
	c.owner.thread = th
	c.publishGrant(c.window.Grant())
	c.show()
	return c
}

// publishGrant lets logins of further connections know the command window.
func (c *sessionState) publishGrant(exp, max pdu.SN) { c.granted.Store(uint64(exp)<<32 | uint64(max)) }

// Granted is ExpCmdSN and MaxCmdSN as last published, for any goroutine. What is
// older than what the initiator knows, it ignores (RFC 7143 section 4.2.2.1).
func (c *sessionState) Granted() (exp, max pdu.SN) {
	v := c.granted.Load()
	return pdu.SN(v >> 32), pdu.SN(v)
}

// open readies the LUNs when the first connection starts.
func (c *sessionState) open() {
	if c.opened {
		return
	}
	c.openLUNs()
	c.opened = true
	c.thread.add(c)
}

// show tells other goroutines the connections there are.
func (c *sessionState) show() {
	shown := make([]shownConnection, 0, len(c.conns))
	for _, o := range c.conns {
		shown = append(shown, shownConnection{ConnectionStats{CID: o.cid, Local: o.local, Remote: o.remote, Lost: o.lost}, &o.carried})
	}
	c.shown.Store(&shown)
}

// speaker is a connection for what is said to the initiator once, nil if there is
// none.
func (c *sessionState) speaker() *Connection {
	for _, o := range c.conns {
		if o.mover != nil && !o.closed {
			return o
		}
	}
	return nil
}

// only is the connection of a session that has exactly one, else nil.
func (c *sessionState) only() *Connection {
	if len(c.conns) == 1 && c.conns[0].mover != nil && !c.conns[0].lost {
		return c.conns[0]
	}
	return nil
}

// closeAll ends all connections at once, or as soon as they start.
func (c *sessionState) closeAll(why error) {
	c.ending = true
	for _, o := range slices.Clone(c.conns) {
		o.close(why)
	}
}

// drainAll ends each connection once what is queued has been sent.
func (c *sessionState) drainAll(why error) {
	c.ending = true
	for _, o := range slices.Clone(c.conns) {
		o.drain(why)
	}
}

// requestLogout asks for the logout of every connection, on itself (RFC 7143
// section 11.9.1, event 1). Who is not there cannot be asked.
func (c *sessionState) requestLogout(within time.Duration, why error) {
	c.logoutRequested = true
	if c.loggedIn() == 0 {
		c.closeAll(why)
		return
	}
	for _, o := range slices.Clone(c.conns) {
		o.requestLogout(within, why)
	}
}

// drop tells the initiator that the session is about to be dropped (RFC 7143 section
// 11.9.1, event 3), and does that once it has been sent.
func (c *sessionState) drop(why error) {
	if o := c.speaker(); o != nil {
		o.announceDrop()
	}
	c.drainAll(why)
}

// newTTT returns a Target Transfer Tag that is not in use and not reserved.
func (c *sessionState) newTTT() uint32 {
	c.nextTTT++
	if c.nextTTT == pdu.ReservedTag {
		c.nextTTT = 1
	}
	return c.nextTTT
}

// abort ends a task without a status: at once, or when what the backing store
// and the transport are doing for it has ended.
func (c *sessionState) abort(t *task) {
	c.waiters.remove(t)
	t.conn.revokePlace(t)
	if t.fetching() {
		t.dying = true // Fetched comes back to it
		return
	}
	if t.cmd.Abort() {
		t.endUnanswered()
	}
}

// removeEnded removes a connection that has ended and has no tasks left: with the last
// one the session has ended (RFC 7143 section 6.1).
func (c *sessionState) removeEnded(o *Connection) {
	c.conns = slices.DeleteFunc(c.conns, func(x *Connection) bool { return x == o })
	c.show()
	if len(c.conns) > 0 || c.finished {
		return
	}
	c.finished = true
	c.thread.remove(c)
	c.thread.gate.close(c)
	for _, l := range c.luns {
		l.nexus.LU.Detach(l.nexus)
	}
	c.session.node.sessionEnded(c.session)
}

// post runs f on the session's thread, at once when that is this one and the
// session has arrived there.
func (c *sessionState) post(f func()) {
	th := c.owner.now()
	if !th.loop.OnThread() || c.thread != th {
		th.loop.Post(evloop.Func(func() { c.post(f) })) // it may have moved meanwhile
		return
	}
	defer c.Contain()
	f()
}

// Contain is deferred around every entry: a panic ends the session whose code
// panicked, and only it.
func (c *sessionState) Contain() {
	if p := recover(); p != nil {
		c.panicked(p)
	}
}

func (c *sessionState) panicked(p any) {
	c.log.Error("panic in session: it is closed, others go on", "panic", p, "stack", string(debug.Stack()))
	if t := c.calling; t != nil {
		c.calling, c.executing = nil, nil
		t.discard()
	}
	c.closeAll(fmt.Errorf("internal error: %v", p))
}

// connection returns the connection with the CID, or nil: the last one, if some are
// about to be replaced.
func (c *sessionState) connection(cid uint16) *Connection {
	for _, o := range slices.Backward(c.conns) {
		if o.cid == cid && !o.removed {
			return o
		}
	}
	return nil
}

// admit lets a connection in login join the session. One with the same CID is
// replaced: it is ended first, with its tasks, and the others go on (connection
// reinstatement, RFC 7143 section 6.3.4); if it is in login still, as soon as it starts.
// At ErrorRecoveryLevel 2 it is logged out for recovery instead.
func (c *sessionState) admit(o *Connection, then func(error)) {
	old := c.connection(o.cid)
	switch {
	case c.finished || c.ending:
		then(login.Errorf(pdu.LoginSessionDoesNotExist, "the session has ended"))
		return
	case (old == nil || old.lost) && c.loggedIn() >= c.mostConnections():
		then(login.Errorf(pdu.LoginTooManyConnections, "connection with CID %d beside %d, MaxConnections is %d",
			o.cid, c.loggedIn(), c.session.params.MaxConnections))
		return
	}
	if c.migration.next != nil {
		c.cancelMigration() // a session moves only with one connection
	}
	c.conns = append(c.conns, o)
	c.publishGrant(c.window.Grant()) // what has ended since something was sent the initiator does not know
	c.show()
	if old != nil {
		old.displace(errReinstated, func() { then(nil) })
		return
	}
	then(nil)
}

// displace ends the connection, and then goes on: at ErrorRecoveryLevel 2 its tasks wait
// to be reassigned.
func (c *Connection) displace(why error, then func()) {
	if c.lost {
		c.remove()
		then()
		return
	}
	c.ended = append(c.ended, func() {
		if c.lost && !c.removed { // it was ending for another reason
			c.remove()
		}
		then()
	})
	c.close(why)
}
