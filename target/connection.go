package target

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/scheduler"
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
	errReinstated = errors.New("the initiator logged in again")
	errShutdown   = errors.New("the server is shutting down")
	errReset      = errors.New("target reset")
	errWithdrawn  = errors.New("what the session was about is not configured any more")
	errDiverted   = errors.New("the portal is drained or redirects")
	errKicked     = errors.New("an administrator ended it")
)

// Connection is a connection in full feature phase (RFC 7143 section 4.2.4),
// with the state of its session that the data path changes. All of it belongs
// to the event thread.
type Connection struct {
	session *Session
	thread  *thread
	owner   owner
	mover   Datamover
	assist  Assistant // the same in iSER-assisted mode, else nil
	log     *slog.Logger
	rare    rareLog // of what the initiator can bring about at will

	statSN  pdu.SN // of the next status
	window  CmdWindow
	held    []heldRequest // came before a command that is missing
	kept    int           // bytes kept for requests, see maxKept
	tasks   taskTable
	luns    []*lun              // by LUN number while small, see findLUN
	leaving []*lun              // that are not mapped any more and have tasks
	devices []*scheduler.Device // that its LUNs are on
	nowhere *scsi.Nexus         // for commands to LUNs that are not mapped
	nextTTT uint32

	live        int       // tasks that exist, listed or not
	immediates  int       // of them, those outside the window
	managements int       // task management functions under way
	charged     int       // bytes of buffers that tasks hold or the transport still has to send
	executing   *task     // in Execute
	calling     *task     // whose command runs right now, to blame for a panic
	placed      *buf.Ref  // immediate data of the command that is being received
	placing     *task     // whose memory Place has named for the PDU that is being received
	waiters     taskQueue // tasks that wait for memory
	starved     bool      // is in the thread's list of connections with waiters

	header  pdu.BHS // of the PDU that is being made; the Datamover copies it
	request request // that is being acted on

	pace pace
	text textExchange
	nop  nopState
	home homing

	traffic *traffic // for anyone to read

	doomed   error // why it is to end before it has started
	closed   bool  // the transport is gone
	finished bool  // and so are all tasks
}

// owner tells other goroutines which thread a connection belongs to.
//
// INVARIANT: whoever posts to the thread holds the lock, so that what is
// posted after a move comes after the connection's arrival.
type owner struct {
	sync.Mutex
	thread *thread
}

// maxImmediates bounds commands outside the window (RFC 7143 section 4.2.2.1
// leaves the number to the target).
const maxImmediates = 64

// newConnection makes the connection of a session for the thread; it lives
// from start on.
func newConnection(s *Session, th *thread) *Connection {
	depth := s.settings.Limits.QueueDepth
	c := &Connection{session: s, thread: th, tasks: newTaskTable(depth + maxImmediates), log: s.log(), rare: rareLog{most: 10}, traffic: newTraffic()}
	c.owner.thread = th
	c.nop.timer.Fire = c.checkNOP
	return c
}

// start begins the full feature phase, on the connection's thread: statSN is
// the next StatSN, cmdSN the first command's CmdSN.
func (c *Connection) start(mover Datamover, statSN, cmdSN pdu.SN) {
	c.mover, c.statSN = mover, statSN
	c.assist, _ = mover.(Assistant)
	c.window = NewCmdWindow(cmdSN, uint32(c.session.settings.Limits.QueueDepth))
	c.log = c.session.log()
	if err := c.begin(); err != nil {
		c.closed = true
		c.log.Warn("session closed", "reason", err)
		c.mover.Close(err, false)
		c.finishIfIdle()
		return
	}
	if err := c.mover.Attach(c, c.thread.loop); err != nil {
		c.close(err)
	}
}

// begin readies the LUNs; it fails when another login has replaced the
// session already.
func (c *Connection) begin() error {
	if c.doomed != nil {
		return c.doomed
	}
	if err := c.openLUNs(); err != nil {
		return err
	}
	c.thread.add(c)
	c.armNOP()
	return nil
}

// Stamp implements Receiver: the one place where sequence numbers of outgoing
// PDUs are set (RFC 7143 sections 4.2.2.1 and 4.2.2.2). A PDU that carries a
// status, or ends an exchange, takes a StatSN; R2T and an unsolicited NOP-In
// show the next one; a Data-In without status has none.
func (c *Connection) Stamp(bhs *pdu.BHS) {
	exp, max := c.window.Grant()
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

// newTTT returns a Target Transfer Tag that is not in use and not reserved.
func (c *Connection) newTTT() uint32 {
	c.nextTTT++
	if c.nextTTT == pdu.ReservedTag {
		c.nextTTT = 1
	}
	return c.nextTTT
}

// violation ends the connection because the initiator broke the protocol:
// at ErrorRecoveryLevel 0 that is session recovery (RFC 7143 section 7.1.4.4).
func (c *Connection) violation(format string, args ...any) {
	c.close(fmt.Errorf("%w: %w", errProtocol, fmt.Errorf(format, args...)))
}

// close ends the connection at once, or as soon as it starts.
func (c *Connection) close(why error) {
	switch {
	case c.mover == nil:
		c.doomed = why
	case !c.closed:
		c.mover.Close(why, false)
	}
}

// drain ends the connection once what is queued has been sent.
func (c *Connection) drain(why error) {
	if c.mover == nil {
		c.doomed = why
	} else if !c.closed {
		c.mover.Close(why, true)
	}
}

// Closed implements Receiver: tasks are ended as a lost nexus ends them (SAM-5
// clause 6.3.4), and when the last one is gone, the session has ended.
func (c *Connection) Closed(why error) {
	if c.closed {
		return
	}
	c.closed = true
	c.log.Info("session closed", "reason", why)
	c.thread.loop.Disarm(&c.nop.timer)
	c.held = nil
	c.dropPlaced()
	for _, t := range c.tasks.appendMatching(nil, func(*task) bool { return true }) {
		c.abort(t)
	}
	c.finishIfIdle()
}

// abort ends a task without a status: at once, or when what the backing store
// and the transport are doing for it has ended.
func (c *Connection) abort(t *task) {
	c.waiters.remove(t)
	c.withdraw(t)
	if t.fetching() {
		t.dying = true // Fetched comes back to it
		return
	}
	if t.cmd.Abort() {
		t.end()
	}
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
		c.finishIfIdle()
	} else if c.home.next != nil {
		c.moveIfIdle()
	}
}

func (c *Connection) finishIfIdle() {
	if c.live == 0 && !c.finished {
		c.finished = true
		c.thread.remove(c)
		c.thread.gate.close(c)
		for _, l := range c.luns {
			l.nexus.LU.Detach(l.nexus)
		}
		c.session.end()
	}
}

// Contain implements Receiver.
func (c *Connection) Contain() {
	if p := recover(); p != nil {
		c.log.Error("panic in session: it is closed, others go on", "panic", p, "stack", string(debug.Stack()))
		if t := c.calling; t != nil {
			c.calling, c.executing = nil, nil
			t.abandon()
		}
		c.close(fmt.Errorf("internal error: %v", p))
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
		c.close(fmt.Errorf("internal error: %v", p))
	}
}

// Wake implements scsi.Port. The thread does not change while the task lives: a
// connection moves only when it has none.
func (t *task) Wake(cmd *scsi.Command, work scsi.Task) {
	t.conn.thread.loop.Post(evloop.Func(func() {
		defer t.Contain(cmd)
		work.Run()
	}))
}
