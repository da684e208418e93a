package target

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"lunar/internal/refusals"
	"lunar/target/pdu"
	"lunar/target/scsi/sense"
)

// Connection recovery (ErrorRecoveryLevel 2, RFC 7143 section 7.1.4.3): the end of a
// connection does not end its tasks. The connection stays as what they have allegiance
// to, with what was not acknowledged of what it sent (recall.go), until another one
// takes them over (reassign.go) or Time2Wait and Time2Retain are over (section 7.5).
// With the last connection, that is how long the session stays. Its tasks go on with
// the buffers that they have and get no further ones. What they send is kept, and the
// transport that is gone drops it.

// errRemoved is why a connection ends that was logged out for recovery.
var errRemoved = errors.New("logged out for recovery")

// maxWait bounds the part of the retention that the initiator alone decides on: the
// negotiated Time2Wait is the longer of both sides'.
const maxWait = time.Minute

// retention is the state of a connection that has been lost.
type retention struct {
	lost    bool // it waits for its tasks to be reassigned
	removed bool // it was logged out, without which no task may be (section 7.2.2)
}

// recovers reports whether the session is at ErrorRecoveryLevel 2.
func (s *Session) recovers() bool {
	return s.target != nil && !s.assisted && s.params.ErrorRecoveryLevel > 1
}

// retention is Time2Wait and Time2Retain of the session's connections.
func (s *Session) retention() (wait, retain time.Duration) {
	p := &s.params
	return min(time.Duration(p.DefaultTime2Wait)*time.Second, maxWait), time.Duration(p.DefaultTime2Retain) * time.Second
}

// retain keeps a connection's tasks when its transport has ended; false if they are
// to end with it.
func (c *Connection) retain(why error) bool {
	if c.recall == nil || !c.session.recovers() || c.session.params.DefaultTime2Retain == 0 ||
		c.ending || c.logoutRequested || errors.Is(why, errLoggedOut) || !c.mayRetain() {
		return false
	}
	c.lost, c.placing = true, nil
	c.thread.load.Add(-1)
	c.started = false
	for _, t := range c.ownTasks() {
		c.waiters.remove(t)
	}
	c.recall.retire()
	wait, retain := c.session.retention()
	c.log.Info("tasks of the connection wait for another one", "tasks", c.own, "answered", len(c.recall.statuses), "for", wait+retain)
	if errors.Is(why, errRemoved) || errors.Is(why, errReinstated) {
		c.remove()
	} else {
		c.thread.loop.Arm(&c.expiry, wait+retain)
		c.tellLost(wait, retain)
	}
	c.boundLost()
	c.thread.freed() // they may have stood in the way of others
	c.passFences()
	c.show()
	c.hasEnded()
	return true
}

// ownTasks are the tasks that have allegiance to the connection.
func (c *Connection) ownTasks() []*task {
	return c.tasks.appendMatching(nil, func(t *task) bool { return t.conn == c })
}

// tellLost tells the initiator on another connection, as it may not have seen the end
// (section 11.9.1, event 2).
func (c *Connection) tellLost(wait, retain time.Duration) {
	o := c.speaker()
	if o == nil {
		return
	}
	var p pdu.AsyncMessage
	p.Init()
	p.SetEvent(pdu.AsyncDropConnection)
	p.SetParameter1(c.cid)
	p.SetParameter2(uint16(wait / time.Second))
	p.SetParameter3(uint16(retain / time.Second))
	o.mover.SendControl(p.BHS(), nil, nil)
}

// maxLost bounds the lost connections of a session; what they keep of data is bounded by
// the session's memory once more, and by maxRetained for all sessions of the server.
const (
	maxLost     = 16
	maxRetained = 256 << 20
)

// mayRetain reports whether what the connection has sent and was not acknowledged fits what
// is kept for all lost connections.
func (c *Connection) mayRetain() bool {
	kept := c.session.node.retention().Load()
	if kept+int64(c.recall.parts.bytes) <= maxRetained {
		return true
	}
	c.thread.refused.count(refusals.Retention)
	c.log.Warn("tasks of the connection end with it: too much is kept for lost connections", "bytes", kept, "limit", maxRetained)
	return false
}

// boundLost ends the retention of connections beyond the bounds: of those without tasks
// first, whose answers the initiator mostly has and could not acknowledge, then of the
// oldest.
func (c *sessionState) boundLost() {
	for most := c.session.settings.Limits.SessionMemory; ; {
		var lost []*Connection
		bytes := 0
		for _, o := range c.conns {
			if o.lost {
				lost = append(lost, o)
				bytes += o.recall.parts.bytes
			}
		}
		if len(lost) <= maxLost && (bytes <= most || len(lost) == 1) {
			return
		}
		o := lost[max(0, slices.IndexFunc(lost, (*Connection).idle))]
		c.thread.refused.count(refusals.Retention)
		o.rare.Log(o.log, slog.LevelWarn, "what a lost connection has kept is discarded: the session's lost connections keep too much",
			"tasks", o.own, "connections", len(lost), "bytes", bytes, "limit", most)
		o.discard()
	}
}

// remove logs a lost connection out for recovery: the time for its tasks begins
// anew (section 7.6 c), and its CID is free.
func (c *Connection) remove() {
	c.removed = true
	wait, retain := c.session.retention()
	c.thread.loop.Arm(&c.expiry, wait+retain)
	c.show()
	c.endIfIdle()
}

// expire is the timer.
func (c *Connection) expire() {
	defer c.Contain()
	c.log.Warn("no other connection has taken over the tasks in time: they are ended", "tasks", c.own)
	c.discard()
}

// discard ends a lost connection, with its tasks. Unless the session ends with it,
// the initiator hears of that from the logical units (section 7.6 b and c).
func (c *Connection) discard() {
	c.lost = false
	c.endOwn()
	c.endIfIdle()
}

// idle reports that the connection has no tasks.
func (c *Connection) idle() bool { return c.own == 0 }

// spent reports that nothing of a lost connection can be asked for any more, and that
// the session goes on without it.
func (c *Connection) spent() bool {
	asked := slices.ContainsFunc(c.functions, func(tm *taskManagement) bool { return tm.conn == c })
	return c.removed && c.idle() && !asked && len(c.recall.statuses) == 0 && c.speaker() != nil
}

// loggedIn is how many connections are in full feature phase or about to be.
func (c *sessionState) loggedIn() (n int) {
	for _, o := range c.conns {
		if !o.lost {
			n++
		}
	}
	return n
}

// mostConnections is how many connections the session may have. At ErrorRecoveryLevel
// 2 there must be room for one that comes to remove the other (section 6.3.4).
func (c *sessionState) mostConnections() int {
	most := int(c.session.params.MaxConnections)
	if c.session.recovers() {
		most = max(most, 2)
	}
	return most
}

// endOwn ends the tasks that have allegiance to the connection. The initiator hears
// of that from the logical units when its session goes on (RFC 7143 section
// 11.14.5: SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT).
func (c *Connection) endOwn() {
	if c.recall != nil {
		c.recall.discard()
	}
	for _, t := range c.ownTasks() {
		if t.lun != nil && len(c.conns) > 1 {
			t.lun.nexus.Attention(sense.ASCCommandsClearedByProtocol)
		}
		c.abort(t)
	}
}
