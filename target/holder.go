package target

import (
	"lunar/internal/buf"
	"lunar/target/login"
	"lunar/target/scsi"
)

// An event thread's buffers are shared out among initiators, not sessions or
// connections, of which anybody can have many. Two rules see to it that nobody waits
// for somebody who does not go on:
//
//   - A holder may have as much as it leaves free (dynamic thresholds: A. Choudhury and
//     E. Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). One may have half of the
//     buffers, N that want all they can get have 1/(N+1) each, and as much is left for
//     who comes next.
//   - A part of the pool is set aside in blocks of one segment, whatever the rest is split
//     into: a reserve. A session that gets nothing of the rest has one of them to itself.
//     With more sessions than blocks, holders have equal parts of them.

const (
	// leastPart is what a holder may have whatever is left: as much as one command uses.
	leastPart = scsi.MaxSegments * scsi.SegmentSize
	// asidePart is the part of the buffers that is set aside: one in so many.
	asidePart = 4
)

// holder is an initiator that uses buffers of an event thread: an initiator name that a
// user has proven to be his, or a single session that has proven nothing.
type holder struct {
	charged, reserve buf.Account
	sessions         int
}

// holderKey is what holders are told apart by.
type holderKey struct {
	proof login.Proof
	name  string
	one   *core // without a proof
}

func (c *core) holderKey() holderKey {
	if i := &c.session.initiator; i.Proof.Proven() {
		return holderKey{proof: i.Proof, name: i.Name}
	}
	return holderKey{one: c}
}

// hold gives a session that begins on the thread its holder.
func (th *thread) hold(c *core) {
	key := c.holderKey()
	h := th.holders[key]
	if h == nil {
		h = &holder{}
		th.holders[key] = h
	}
	h.sessions++
	c.holder, c.charged.Of, c.reserve.Of = h, &h.charged, &h.reserve
}

// unhold follows the end of a session on the thread. What its transport has yet to
// give back is counted nowhere else.
func (th *thread) unhold(c *core) {
	if c.holder.sessions--; c.holder.sessions == 0 {
		delete(th.holders, c.holderKey())
	}
}

// allots reports whether a holder may have n bytes more of what all share.
func (th *thread) allots(h *holder, n int) bool {
	return !th.exhausted && (h.charged.Used == 0 || h.charged.Used+n <= max(th.loop.Pool().Unreserved(), leastPart))
}

// fallBack returns the session's own buffer if it is free.
func (th *thread) fallBack(c *core, n int) *buf.Ref {
	if th.reserves(c) {
		if ref := th.loop.Pool().GetAside(n); ref != nil {
			ref.Charge(&c.reserve)
			return ref
		}
	}
	th.deny(c.holder)
	return nil
}

func (th *thread) deny(h *holder) {
	if d := &th.denied; d[0] == nil || d[0] == h {
		d[0] = h
	} else {
		d[1] = h
	}
}

// reserves reports whether the session may use its own buffer.
func (th *thread) reserves(c *core) bool {
	if c.reserve.N > 0 {
		return false
	}
	all := th.loop.Pool().Asides()
	return len(th.sessions) <= all || c.holder.reserve.N < max(1, all/len(th.holders))
}
