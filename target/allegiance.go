package target

import (
	"slices"

	"lunar/target/pdu"
)

// What follows keeps task management right when commands and responses are on their
// way on several connections at a time (RFC 7143 section 4.2.3).

// commandsArrived reports whether the commands that were numbered before an immediate task
// management request have come, on whatever connection. If the request speaks of
// several tasks, those commands may belong to them: it waits for them (section
// 4.2.3.2), but a target reset takes their places as if they had come and been ended.
func (c *Connection) commandsArrived(r *request, f pdu.TaskManagementFunction) bool {
	s, several := scopes[f]
	if !r.bhs.Immediate() || !several || r.bhs.CmdSN().LessEq(c.window.exp) {
		return true
	}
	if !s.needsLUN {
		if slices.ContainsFunc(c.luns, readOnly) {
			return true // it is going to be refused
		}
		for sn := c.window.exp; sn.LessThan(r.bhs.CmdSN()) && sn.InWindow(c.window.exp, c.window.max); sn++ {
			c.plug(r.bhs.CmdSN(), sn) // false for what has come before its turn, which is ended like the rest
		}
		return true
	}
	waiting := 0
	for i := range c.early {
		if c.early[i].bhs.Immediate() {
			waiting++
		}
	}
	if waiting >= maxManagements {
		c.reject(r, pdu.RejectImmediateCommand)
		return false
	}
	c.early = append(c.early, earlyRequest{conn: c, bhs: *r.bhs})
	return false
}

// plug takes the place of a command that has not come, so that it is ignored when it
// comes (section 11.5.1): sn is its CmdSN, before that of the function that aborts
// it. It is false if there is no such place.
func (c *Connection) plug(before, sn pdu.SN) bool {
	if !sn.LessThan(before) || !sn.InWindow(c.window.exp, c.window.max) {
		return false
	}
	for i := range c.early {
		if h := &c.early[i]; h.bhs.CmdSN() == sn && !h.bhs.Immediate() {
			return false
		}
	}
	c.early = append(c.early, placeOf(nil, sn))
	return true
}

// placeOf is what takes the place of a command in the command order: a NOP-Out without
// answer.
func placeOf(c *Connection, sn pdu.SN) earlyRequest {
	h := earlyRequest{conn: c}
	p := (*pdu.NOPOut)(&h.bhs)
	p.Init()
	p.BHS().SetITT(pdu.ReservedTag)
	p.BHS().SetCmdSN(sn)
	return h
}

// abortInPlace leaves nothing of an early command but its place. One that another
// initiator has ended is its connection's still: if that ends, it is sent again.
func (c *sessionState) abortInPlace(h *earlyRequest, own bool) {
	c.stashed -= h.length()
	conn := h.conn
	if own {
		conn = nil
	}
	*h = placeOf(conn, h.bhs.CmdSN())
}

// fence reports whether the response of a function that ended several tasks has to
// wait: until the initiator has seen, on the other connections, the responses that
// were sent before it (section 4.2.3.2). It is asked by NOP-Ins, which come behind
// them.
func (c *sessionState) fence(tm *taskManagement) bool {
	if tm.asked == nil {
		tm.asked = make(map[*Connection]uint32)
		for _, o := range c.conns {
			if o != tm.conn && o.mover != nil && !o.closed {
				tm.asked[o] = o.ask()
			}
		}
		if len(tm.asked) > 0 {
			c.fences = append(c.fences, tm)
		}
	}
	return len(tm.asked) > 0
}

// answered takes an answer to a NOP-In of the connection.
func (c *Connection) answered(ttt uint32) {
	if c.recall != nil {
		c.recall.acknowledges(ttt)
	}
	for _, tm := range c.fences {
		if tm.asked[c] == ttt {
			delete(tm.asked, c)
		}
	}
	c.passFences()
}

// passFences goes on with the functions whose connections have all answered or
// ended.
func (c *sessionState) passFences() {
	var passed []*taskManagement
	c.fences = slices.DeleteFunc(c.fences, func(tm *taskManagement) bool {
		for o := range tm.asked {
			if o.closed {
				delete(tm.asked, o)
			}
		}
		if len(tm.asked) > 0 {
			return false
		}
		passed = append(passed, tm)
		return true
	})
	for _, tm := range passed {
		tm.respond()
	}
}
