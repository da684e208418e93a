package target

import (
	"cmp"
	"slices"

	"lunar/target/pdu"
)

// reassign is TASK REASSIGN (RFC 7143 sections 7.2.2 and 11.5.1): a task whose
// connection was lost and logged out goes on, on the connection that asks, from what
// ExpDataSN says that the initiator has. It takes effect behind the response.
func (c *Connection) reassign(tm *taskManagement, p *pdu.TaskManagementRequest) pdu.TaskManagementResponseCode {
	itt, exp := p.ReferencedTaskTag(), p.ExpDataSN()
	switch {
	case c.recall == nil || !c.session.recovers():
		return pdu.FunctionReassignmentNotSupported
	case !p.BHS().Immediate():
		return pdu.FunctionRejected
	}
	if t := c.tasks.find(itt); t != nil {
		switch {
		case t.cmd.Aborted():
			return pdu.FunctionTaskDoesNotExist
		case !t.conn.removed:
			return pdu.FunctionTaskStillAllegiant
		}
		tm.then = func() { c.adopt(t, exp) }
		return pdu.FunctionComplete
	}
	if under := c.function(itt); under != nil && under != tm {
		return c.reassignFunction(tm, under)
	}
	switch o := c.answeredOn(itt); {
	case o == nil:
		return pdu.FunctionTaskDoesNotExist
	case !o.removed:
		return pdu.FunctionTaskStillAllegiant
	default:
		tm.then = func() { c.answerAgain(o, itt, exp) }
		return pdu.FunctionComplete
	}
}

// answeredOn returns the connection on which the task with the tag was answered, if
// the initiator has not acknowledged that. A tag may have been used again meanwhile, on
// another connection: then the last answer counts.
func (c *sessionState) answeredOn(itt uint32) (on *Connection) {
	var last uint64
	for _, o := range c.conns {
		if o.recall == nil {
			continue
		}
		if i := o.recall.answer(itt); i >= 0 && (on == nil || o.recall.statuses[i].turn > last) {
			on, last = o, o.recall.statuses[i].turn
		}
	}
	return on
}

// adopt gives a task allegiance to the connection and continues it.
func (c *Connection) adopt(t *task, exp pdu.SN) {
	from := t.conn
	parts := from.recall.take(t.itt)
	from.pacing.leave(t)
	from.own--
	c.own++
	t.conn, t.snackTag, t.moved = c, 0, c.thread.loop.Now()
	t.renew()
	if t.cmd.HasOut {
		releaseAll(parts)
		t.solicitAgain(exp)
	} else {
		t.dataSN = c.recall.sendAgain(parts, exp, t.dataSN)
	}
	c.calling = t
	t.cmd.Resume() // it may have stopped for want of memory
	c.calling = nil
	from.endIfIdle()
}

// answerAgain sends the response of a task that has ended, and before it the data
// that the initiator does not have. The response has a StatSN of this connection.
func (c *Connection) answerAgain(from *Connection, itt uint32, exp pdu.SN) {
	rsp, parts := from.recall.takeResponse(itt), from.recall.take(itt)
	switch rsp.bhs.Opcode() {
	case pdu.OpSCSIResponse:
		p := (*pdu.SCSIResponse)(&rsp.bhs)
		if len(parts) > 0 && parts[0].bhs.Opcode() == pdu.OpDataIn {
			p.SetExpDataSN(c.recall.sendAgain(parts, exp, p.ExpDataSN()))
		} else {
			releaseAll(parts)
		}
		p.BHS().SetTTT(0) // the SNACK Tag
	case pdu.OpTextResponse:
		if from.text.open && from.text.itt == itt {
			c.text, from.text = from.text, textExchange{} // it goes on here
		}
	}
	c.mover.SendControl(&rsp.bhs, rsp.data, nil)
	from.endIfIdle()
}

// reassignFunction is reassign for a task management function that is under way: it will
// be answered on this connection.
func (c *Connection) reassignFunction(tm, under *taskManagement) pdu.TaskManagementResponseCode {
	from := under.conn
	if !from.removed {
		return pdu.FunctionTaskStillAllegiant
	}
	tm.then = func() {
		under.conn = c
		from.endIfIdle()
	}
	return pdu.FunctionComplete
}

// function returns the task management function under way with the tag, or nil.
func (c *sessionState) function(itt uint32) *taskManagement {
	for _, tm := range c.functions {
		if tm.itt == itt {
			return tm
		}
	}
	return nil
}

// answer is where the last response of a task with the tag is, whether it was sent or
// not, or -1.
func (r *recall) answer(itt uint32) int {
	for i := len(r.statuses) - 1; i >= 0; i-- {
		if r.statuses[i].answers(itt) {
			return i
		}
	}
	return -1
}

// takeResponse removes the response of a task, which is there, from what a lost
// connection keeps, and returns it.
func (r *recall) takeResponse(itt uint32) recalled {
	i := r.answer(itt)
	rsp := r.statuses[i]
	r.statuses = slices.Delete(r.statuses, i, i+1)
	return rsp
}

// sendAgain sends the Data-In PDUs of a task that the initiator did not acknowledge,
// cut as this connection's are, and returns the DataSN that follows. It was next. exp
// is the initiator's ExpDataSN; one that cannot be is ignored (RFC 7143 section 11.5.6).
func (r *recall) sendAgain(parts []recalled, exp, next pdu.SN) pdu.SN {
	if len(parts) == 0 {
		return next
	}
	sn := parts[0].sn()
	if exp != 0 && sn.LessEq(exp) && exp.LessEq(next) {
		parts = slices.DeleteFunc(parts, func(p recalled) bool {
			had := p.sn().LessThan(exp)
			if had {
				p.release()
			}
			return had
		})
		sn = exp
	}
	for i := range parts {
		sn = r.cut(&parts[i], sn)
	}
	return sn
}

// solicitAgain asks for the data of a write that was asked for, or was to come unasked,
// and has not come. exp is the R2TSN that the initiator expects; those before the ones
// that were not answered it has seen.
func (t *task) solicitAgain(exp pdu.SN) {
	open := slices.Clone(t.r2ts[:t.r2tCount])
	slices.SortFunc(open, func(a, b sequence) int { return cmp.Compare(a.next, b.next) })
	if answered := t.dataSN - pdu.SN(len(open)); answered.LessEq(exp) && exp.LessEq(t.dataSN) {
		t.dataSN = exp
	} else {
		t.dataSN = answered
	}
	clear(t.r2ts[:t.r2tCount])
	t.r2tCount, t.unsolicited.open = 0, false
	for _, s := range open {
		t.askAgain(s.next, s.end)
	}
	t.solicit()
}
