package target

import (
	"errors"
	"log/slog"
	"slices"

	"lunar/internal/refusals"
)

// errUsurer is why a connection ends that holds buffers which others wait for.
var errUsurer = errors.New("it holds most of the buffers that others wait for, and does not go on")

// relieve follows judgeDebts: while somebody has to wait for buffers that others hold, the
// one who holds most is to go on, or to give them back. Where those are strangers at one
// address, and nobody else waits, that is the session that holds most.
func (th *thread) relieve(now int64) {
	most := th.quotas.largest()
	if most == nil {
		return
	}
	one := th.largest(most)
	if one == nil { // its sessions are at other servers, which see to it that they go on
		return
	}
	own := most.denied.others(&one.quota)
	if th.quotas.denied.others(most) || th.waits(func(c *sessionState) bool { return c.holder != most }) {
		for c := range th.sessions {
			if c.holder == most {
				c.endStalled(now)
			}
		}
		return
	}
	if most.strange && (own || th.waits(func(c *sessionState) bool { return c.holder == most && c != one })) {
		one.endStalled(now)
	}
}

// largest is the session of a holder that holds most buffers.
func (th *thread) largest(h *holder) (most *sessionState) {
	for c := range th.sessions {
		if c.holder == h && (most == nil || c.charged.Used > most.charged.Used) {
			most = c
		}
	}
	return most
}

// waits reports whether one of some sessions waits for a buffer that its own limit allows.
func (th *thread) waits(one func(*sessionState) bool) bool {
	return slices.ContainsFunc(th.starved, func(c *sessionState) bool {
		return one(c) && c.charged.Used < c.session.settings.Limits.SessionMemory
	})
}

// endStalled ends commands whose initiator does not send their data, and connections that
// do not take theirs.
func (c *sessionState) endStalled(now int64) {
	defer c.Contain()
	for _, o := range append([]*Connection(nil), c.conns...) {
		if o.closed || o.mover == nil {
			continue
		}
		terms := urgentTerms
		if o.assist != nil { // what is being fetched cannot be taken back: its connection is at stake
			terms = untakenTerms
		}
		late := c.tasks.appendMatching(nil, func(t *task) bool { return t.conn == o && t.overdue(now, terms) })
		switch {
		case o.debts.urgentlyLate, len(late) > 0 && o.assist != nil:
			c.thread.refused.count(refusals.Hoarded)
			o.close(errUsurer)
		case len(late) > 0:
			o.rare.Log(o.log, slog.LevelWarn, "commands ended: their data do not come, and others wait for the buffers", "commands", len(late))
			for _, t := range late {
				c.thread.refused.count(refusals.Hoarded)
				t.endStalled()
			}
		}
	}
}

// endStalled ends a task that waits for its data. The initiator is to come again.
func (t *task) endStalled() {
	t.conn.revokePlace(t)
	t.conn.waiters.remove(t)
	t.wanted, t.r2tCount = 0, 0
	t.unsolicited.open = false
	t.cmd.ForgoTransfer(t.conn.comeAgain())
}
