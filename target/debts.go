package target

import (
	"fmt"
	"time"

	"lunar/internal/debt"
	"lunar/internal/refusals"
)

// Data-Out that was asked for, and responses that are not taken, hold buffers that
// others wait for. What counts is bytes against a deadline: neither an empty Data-Out
// nor a byte now and then puts it off, and neither does an answer to a ping.

const (
	// leastRate is how many bytes a second an initiator has to move in either direction
	// as long as it holds buffers by not moving them: 64 sessions may share a link of
	// 1 MiB a second.
	leastRate = 16 << 10
	// urgentPatience and urgentRate are what the largest holder gets while others have to
	// wait for buffers: it loses first, commands that can be repeated by this rate, its
	// connection only by untakenRate, for a slow link loses that again and again.
	urgentPatience = 2 * time.Second
	urgentRate     = 1 << 20
	untakenRate    = 128 << 10
	// defaultPatience is for sessions whose initiators are not asked whether they live.
	defaultPatience = 30 * time.Second
)

// debts is what a connection's initiator owes.
type debts struct {
	taking, sending debt.Account
	urgent          debt.Account // taking, by untakenTerms
	urgentlyLate    bool
}

var (
	urgentTerms  = debt.Terms{Patience: urgentPatience, Rate: urgentRate}
	untakenTerms = debt.Terms{Patience: urgentPatience, Rate: untakenRate}
)

// terms are what the session's initiator is given.
func (s *Session) terms() debt.Terms {
	t := debt.Terms{Patience: defaultPatience, Rate: leastRate}
	if s.settings.NOPInterval > 0 {
		t.Patience = s.settings.NOPInterval + s.settings.NOPTimeout
	}
	return t
}

// claim is of data that are asked for now. They come behind all that the session was
// asked for before, which is no more than it has buffers for.
func (c *sessionState) claim() debt.Claim {
	return debt.Claim{Since: c.thread.patience.Now(c.thread.loop.Now()), Bytes: c.charged.Used + c.reserve.Used}
}

// judgeDebts ends connections whose initiator is late: it holds buffers that others
// wait for.
func (c *sessionState) judgeDebts(now int64) {
	defer c.Contain()
	terms := c.session.terms()
	for _, o := range append([]*Connection(nil), c.conns...) {
		if o.closed || o.mover == nil {
			continue
		}
		if r, why := o.late(now, terms); why != nil {
			o.thread.refused.count(r)
			o.close(why)
		}
	}
}

// late returns why the connection is to end, or nil.
func (c *Connection) late(now int64, terms debt.Terms) (refusals.Reason, error) {
	if m, ok := c.mover.(Debtor); ok {
		owed := m.Owed()
		c.debts.urgentlyLate = c.debts.urgent.Look(now, owed.Untaken, owed.Taken, untakenTerms)
		if c.debts.taking.Look(now, owed.Untaken, owed.Taken, terms) {
			return refusals.Untaken, errStalled
		}
		if c.debts.sending.Look(now, owed.Partial, owed.Came, terms) {
			return refusals.Partial, errPartial
		}
	}
	if c.own == 0 {
		return 0, nil
	}
	late := c.tasks.appendMatching(nil, func(t *task) bool { return t.conn == c && t.overdue(now, terms) })
	if len(late) == 0 {
		return 0, nil
	}
	return refusals.Withheld, fmt.Errorf("%w of task %#x within %v, or less than %d bytes a second", errNoData, late[0].itt, terms.Patience, terms.Rate)
}

// overdue reports whether data of the task that were asked for, or that were to come
// unasked, should all be there by now.
func (t *task) overdue(now int64, terms debt.Terms) bool {
	if t.unsolicited.open && t.claimed.Overdue(now, terms) {
		return true
	}
	if t.paced && t.r2tCount == 0 {
		return false // it has asked for nothing yet
	}
	for i := range t.wanted {
		if t.wants[i].claimed.Overdue(now, terms) {
			return true
		}
	}
	return false
}

// renew lets the time for all that the task's initiator owes begin anew.
func (t *task) renew() {
	t.claimed = t.conn.claim()
	for i := range t.wanted {
		t.wants[i].claimed = t.claimed
	}
}
