package target

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"lunar/internal/refusals"
	"lunar/internal/waits"
	"lunar/target/pdu"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// taskManagement is a task management function under way (RFC 7143 section
// 11.5, SAM-5 clause 7). Its response leaves when the last command that it
// ended has really ended: when nothing more is done to the medium for it.
type taskManagement struct {
	conn     *Connection // that asked
	function pdu.TaskManagementFunction
	itt      uint32
	response pdu.TaskManagementResponseCode
	failed   atomic.Bool   // at another server
	ends     *waits.Waiter // for commands and threads that have not reported
	then     func()        // what follows the response
	fenced   bool          // it speaks of several tasks
	asked    map[*Connection]uint32
}

// maxManagements bounds the functions of a connection that are under way: each
// is remembered until the commands that it ended have really ended.
const maxManagements = 64

// scope is one row of the table of functions: which tasks they end and whom
// they tell.
type scope struct {
	needsLUN  bool // tasks of the logical unit addressed, else of all that the asking initiator sees
	ownOnly   bool // tasks of this session, else of all sessions
	attention sense.ASC
	tellSelf  bool // the asking nexus gets the unit attention too
	cold      bool // sessions are closed afterwards
	reset     bool // the logical unit's changeable state goes back to its defaults
	reader    ask  // what it is for who may only read a logical unit of those that it speaks of
}

// ask is what becomes of a function that its initiator has no right to.
type ask uint8

const (
	asIs     ask = iota // it concerns nobody else
	ownTasks            // it ends the tasks of its own session, and nothing else happens
	refuse              // FunctionAuthorizationFailed
)

// scopes is the table of the functions that end sets of tasks (SAM-5 table 36;
// unit attentions per SAM-5 clause 5.14 and table 53).
var scopes = map[pdu.TaskManagementFunction]scope{
	pdu.FunctionAbortTaskSet:     {needsLUN: true, ownOnly: true},
	pdu.FunctionClearTaskSet:     {needsLUN: true, attention: sense.ASCCommandsClearedByAnother, reader: refuse},
	pdu.FunctionLogicalUnitReset: {needsLUN: true, attention: sense.ASCDeviceReset, tellSelf: true, reset: true, reader: ownTasks},
	pdu.FunctionTargetWarmReset:  {attention: sense.ASCDeviceReset, tellSelf: true, reset: true, reader: refuse},
	pdu.FunctionTargetColdReset:  {attention: sense.ASCReset, tellSelf: true, reset: true, cold: true, reader: refuse},
}

// taskManagementRequest takes the PDU.
func (c *Connection) taskManagementRequest(r *request) {
	p := (*pdu.TaskManagementRequest)(r.bhs)
	if c.shared && !c.commandsArrived(r, p.Function()) {
		return
	}
	c.releasePlace(r)
	tm := &taskManagement{conn: c, function: p.Function(), itt: r.bhs.ITT(), response: pdu.FunctionComplete}
	tm.ends = waits.New(func() { c.post(tm.respond) })
	c.functions = append(c.functions, tm)
	c.thread.incidents.functioned(tm.function)
	if len(c.functions) > maxManagements {
		tm.response = pdu.FunctionRejected
		tm.ends.Done()
		return
	}
	c.rare.Log(c.log, slog.LevelInfo, "task management", "function", p.Function().String(), "lun", r.bhs.LUN()>>48, "task", p.ReferencedTaskTag())
	if s, ok := scopes[p.Function()]; ok {
		tm.fenced = true
		c.endTasks(tm, s, r.bhs.LUN())
	} else {
		tm.response = c.single(tm, p)
	}
	tm.ends.Done()
}

// single carries out the functions that speak of one task or none.
func (c *Connection) single(tm *taskManagement, p *pdu.TaskManagementRequest) pdu.TaskManagementResponseCode {
	switch p.Function() {
	case pdu.FunctionAbortTask:
		return c.abortTask(tm, p)
	case pdu.FunctionClearACA:
		return c.clearACA(tm, p.BHS().LUN())
	case pdu.FunctionTaskReassign:
		return c.reassign(tm, p)
	}
	return pdu.FunctionNotSupported
}

// clearACA ends the nexus's ACA condition, and its command with the ACA attribute.
func (c *Connection) clearACA(tm *taskManagement, lunField uint64) pdu.TaskManagementResponseCode {
	l := c.findLUN(lunField)
	if l == nil {
		return pdu.FunctionLUNDoesNotExist
	}
	for _, t := range c.tasks.appendMatching(nil, func(t *task) bool { return t.lun == l && t.cmd.Attribute == scsi.ACA }) {
		c.abortFor(tm.ends, t)
	}
	for _, n := range c.relayFunction(tm, []*lun{l}) {
		n.LU.ClearACA(n)
	}
	return pdu.FunctionComplete
}

// abortTask ends one task, which may still wait for its turn in the command
// order.
func (c *Connection) abortTask(tm *taskManagement, p *pdu.TaskManagementRequest) pdu.TaskManagementResponseCode {
	t := c.tasks.find(p.ReferencedTaskTag())
	if t == nil {
		for i := range c.early {
			if c.early[i].bhs.ITT() == p.ReferencedTaskTag() && c.early[i].bhs.Opcode() == pdu.OpSCSICommand {
				c.abortInPlace(&c.early[i], true)
				return pdu.FunctionComplete
			}
		}
		if c.plug(p.BHS().CmdSN(), p.RefCmdSN()) {
			return pdu.FunctionComplete
		}
		return pdu.FunctionTaskDoesNotExist
	}
	if t.lunField != p.BHS().LUN() {
		return pdu.FunctionTaskDoesNotExist
	}
	c.abortFor(tm.ends, t)
	return pdu.FunctionComplete
}

// endTasks ends the tasks of the scope on all threads that have some.
func (c *Connection) endTasks(tm *taskManagement, s scope, lunField uint64) {
	luns := c.luns
	if s.needsLUN {
		l := c.findLUN(lunField)
		if l == nil {
			tm.response = pdu.FunctionLUNDoesNotExist
			return
		}
		luns = []*lun{l}
	}
	if s.reader != asIs && slices.ContainsFunc(luns, readOnly) {
		c.thread.refused.count(refusals.Function)
		c.rare.Log(c.log, slog.LevelWarn, "task management that changes what others do, by an initiator that may only read",
			"function", tm.function.String(), "lun", lunField>>48)
		if s.reader == refuse {
			tm.response = pdu.FunctionAuthorizationFailed
			return
		}
		s = scopes[pdu.FunctionAbortTaskSet]
	}
	units := unitsOf(luns)
	matches := func(t *task) bool {
		return t.lun != nil && slices.Contains(units, t.lun.nexus.LU)
	}
	c.endMatching(tm.ends, true, matches)
	if s.ownOnly {
		return
	}
	others := c.session.node.sharing(c.session, units)
	c.charge(len(others))
	for _, other := range others {
		tm.ends.Add()
		other.state.post(func() {
			other.state.endMatching(tm.ends, false, matches)
			tm.ends.Done()
		})
	}
	c.session.node.endRemote(units, tm.ends)
	if s.reset {
		c.session.node.endCopies(units, tm.ends)
	}
	announce(s, c.relayFunction(tm, luns))
	if s.cold {
		tm.then = func() { c.session.node.closeSessions(c.session.target, errReset) }
	}
}

// relayFunction has the functions' part of logical units that other servers serve done there, and
// returns the nexuses with the others.
func (c *Connection) relayFunction(tm *taskManagement, luns []*lun) (here []*scsi.Nexus) {
	for _, l := range luns {
		tm.ends.Add()
		relayed := l.nexus.Manage(uint8(tm.function), func(done bool) {
			if !done {
				tm.failed.Store(true)
			}
			tm.ends.Done()
		})
		if !relayed {
			here = append(here, l.nexus)
			tm.ends.Done()
		}
	}
	return here
}

// readOnly reports whether the initiator may only read the LUN.
func readOnly(l *lun) bool { return l.nexus.ReadOnly.Load() }

// unitsOf returns the logical units behind LUNs.
func unitsOf(luns []*lun) []*scsi.LogicalUnit {
	units := make([]*scsi.LogicalUnit, 0, len(luns))
	for _, l := range luns {
		units = append(units, l.nexus.LU)
	}
	return units
}

// announce establishes the scope's unit attentions and resets the units.
func announce(s scope, nexuses []*scsi.Nexus) {
	for _, n := range nexuses {
		except := n
		if s.tellSelf {
			except = nil
		}
		if s.reset {
			n.LU.ResetState()
		}
		n.LU.Attention(s.attention, except)
	}
}

// endMatching ends the session's tasks that match. own says that its own initiator
// asked for that.
func (c *sessionState) endMatching(w *waits.Waiter, own bool, match func(*task) bool) {
	for _, t := range c.tasks.appendMatching(nil, match) {
		if t.listed {
			c.abortFor(w, t)
		}
	}
	for i := range c.early { // commands that wait for a missing one belong to the task set too
		h := &c.early[i]
		if l := c.findLUN(h.bhs.LUN()); h.bhs.Opcode() == pdu.OpSCSICommand && l != nil && match(&task{lun: l}) {
			c.abortInPlace(h, own)
		}
	}
}

// abortFor ends one task, for whose end w waits.
func (c *sessionState) abortFor(w *waits.Waiter, t *task) {
	w.Ends(&t.awaitedBy, t.cmd.Awaiting())
	c.abort(t)
}

// endTasksOf is scsi.Nexus.EndTasks.
func (c *sessionState) endTasksOf(n *scsi.Nexus, except *scsi.Command, done func()) {
	w := waits.New(done)
	c.post(func() {
		c.endMatching(w, false, func(t *task) bool { return t.lun != nil && t.lun.nexus == n && &t.cmd != except })
		w.Done()
	})
}

// awaitTasksOf is scsi.Nexus.AwaitTasks.
func (c *sessionState) awaitTasksOf(n *scsi.Nexus, match func(*scsi.Command) bool, done func()) {
	w := waits.New(done)
	c.post(func() {
		of := func(t *task) bool { return t.lun != nil && t.lun.nexus == n && match(&t.cmd) }
		for _, t := range c.tasks.appendMatching(nil, of) {
			w.Awaits(&t.awaitedBy)
		}
		w.Done()
	})
}

// respond answers, on the thread of the connection that asked.
func (tm *taskManagement) respond() {
	c := tm.conn
	gone := c.closed && !c.lost // else what is sent is kept for another connection
	if tm.fenced && c.shared && !gone && c.fence(tm) {
		return
	}
	c.functions = slices.DeleteFunc(c.functions, func(o *taskManagement) bool { return o == tm })
	if gone {
		return
	}
	var p pdu.TaskManagementResponse
	p.Init()
	p.BHS().SetITT(tm.itt)
	if tm.failed.Load() {
		tm.response = pdu.FunctionRejected
	}
	p.SetResponse(tm.response)
	c.mover.SendControl(p.BHS(), nil, nil)
	if tm.then != nil {
		tm.then()
	}
}

// endCopies ends those of the session.
func (c *sessionState) endCopies(units []*scsi.LogicalUnit, w *waits.Waiter) {
	for _, t := range c.tasks.appendMatching(nil, func(t *task) bool { return meet(t.used, units) }) {
		if !t.listed {
			continue
		}
		w.Awaits(&t.awaitedBy)
		if !t.cmd.Aborted() {
			t.fail(sense.CopyCleared)
		}
	}
}

// meet reports whether one of the units is in both lists.
func meet(a, b []*scsi.LogicalUnit) bool {
	return slices.ContainsFunc(a, func(lu *scsi.LogicalUnit) bool { return slices.Contains(b, lu) })
}
