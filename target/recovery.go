package target

import "lunar/target/pdu"

// What a connection does for its recall (recall.go, snack.go): the seam of recovery at
// ErrorRecoveryLevel 1. Of level 2 are retain.go and reassign.go.

// remember puts a recall in front of the connection's Datamover.
func (c *Connection) remember() {
	if r, ok := c.mover.(Resender); ok && c.session.params.ErrorRecoveryLevel > 0 {
		c.recall = &recall{Resender: r, of: c, memory: c.thread.depot, lasting: c.session.recovers(), depth: c.session.settings.Limits.QueueDepth}
		c.mover = c.recall
	}
}

// snackRequest sends again what the initiator misses, or takes note of what it has
// (RFC 7143 section 11.16). What is not there any more is rejected: the initiator
// then ends the task itself.
func (c *Connection) snackRequest(r *request) {
	p := (*pdu.SNACKRequest)(r.bhs)
	if c.recall != nil {
		c.charge(c.recall.stamped / statusesLooked)
	}
	if c.recall == nil || p.Type() > pdu.SNACKRData || !snacks[p.Type()](c.recall, p) {
		c.reject(r, pdu.RejectSNACK)
	}
}

// nextAnswer implements recaller.
func (c *sessionState) nextAnswer() uint64 {
	c.answers++
	return c.answers
}

// exists implements recaller.
func (c *sessionState) exists(itt uint32) bool { return c.tasks.find(itt) != nil }

// awaits implements recaller.
func (c *sessionState) awaits(itt, ttt uint32) bool {
	t := c.tasks.find(itt)
	return t != nil && t.sequenceOf(ttt) != nil
}

// renumber implements recaller.
func (c *sessionState) renumber(itt uint32, next pdu.SN, snackTag uint32) {
	if t := c.tasks.find(itt); t != nil {
		t.dataSN, t.snackTag = next, snackTag
	}
}

// keeps implements recaller.
func (c *sessionState) keeps(n int, lost bool) {
	if lost {
		c.session.node.retention().Add(int64(n))
		return
	}
	c.charged.Add(n)
	if n < 0 {
		c.thread.freed()
	}
}

// inShort implements recaller.
func (c *sessionState) inShort() bool { return c.waiters.head != nil }

// askForACKs implements recaller: the initiator acknowledges what keeps memory; its
// answer to a NOP-In carries ExpStatSN.
func (c *sessionState) askForACKs() {
	for _, o := range c.conns {
		if r := o.recall; r != nil && r.lasting && !o.closed && r.parts.bytes > 0 && r.fresh && r.asked == 0 {
			r.asked, r.fresh = o.ask(), false
		}
	}
}

// Restamp implements Receiver.
func (c *Connection) Restamp(bhs *pdu.BHS) {
	exp, max := c.window.Grant()
	bhs.SetExpCmdSN(exp)
	bhs.SetMaxCmdSN(max)
	if bhs.Opcode() == pdu.OpR2T {
		bhs.SetStatSN(c.statSN)
	}
	if c.trace != nil {
		c.trace.note(c, PDUSentAgain, bhs)
	}
}
