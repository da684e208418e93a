package target

import (
	"net/netip"

	"lunar/internal/buf"
	"lunar/internal/places"
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
//     With more sessions than blocks, holders have equal parts of them, one alone half.

const (
	// leastPart is what a holder may have whatever is left: as much as one command uses.
	leastPart = scsi.MaxSegments * scsi.SegmentSize
	// aloneShare is how many times what is left free all at an address may have when they
	// are alone: one session still has half of the buffers at most, and two three quarters.
	aloneShare = 3
	// asidePart is the part of the buffers that is set aside: one in so many.
	asidePart = 4
)

// holder is who uses buffers of an event thread: an initiator name that a user has
// proven to be his, or all at an address who have proven nothing. Of those, who may be
// strangers to each other, each session is held to the first rule by itself, too.
type holder struct {
	charged, reserve buf.Account
	sessions         int
	denied           denied[*core]
	strange          bool
}

// holderKey is what holders are told apart by.
type holderKey struct {
	proof login.Proof
	name  string
	host  netip.Addr // without a proof
}

func (c *core) holderKey() holderKey {
	i := &c.session.initiator
	if i.Proof.Proven() {
		return holderKey{proof: i.Proof, name: i.Name}
	}
	return holderKey{host: places.Host(i.Addr)}
}

// hold gives a session that begins on the thread its holder.
func (th *thread) hold(c *core) {
	key := c.holderKey()
	h := th.holders[key]
	if h == nil {
		h = &holder{strange: !key.proof.Proven()}
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

// allots reports whether a session may have n bytes more of what all share.
func (th *thread) allots(c *core, n int) bool {
	if th.exhausted {
		return false
	}
	h, most := c.holder, max(th.loop.Pool().Unreserved(), leastPart)
	if h.strange && !within(&c.charged, n, most) {
		return false
	}
	if h.strange && len(th.holders) == 1 {
		most *= aloneShare
	}
	return within(&h.charged, n, most)
}

// within reports whether n bytes more are within a part, which none at all is short of.
func within(a *buf.Account, n, most int) bool { return a.Used == 0 || a.Used+n <= most }

// fallBack returns the session's own buffer if it is free.
func (th *thread) fallBack(c *core, n int) *buf.Ref {
	if th.reserves(c) {
		if ref := th.loop.Pool().GetAside(n); ref != nil {
			ref.Charge(&c.reserve)
			return ref
		}
	}
	th.denied.add(c.holder)
	c.holder.denied.add(c)
	return nil
}

// denied are some that got no buffer: enough to tell whether there was another one than
// the one who has most.
type denied[T comparable] [2]T

func (d *denied[T]) add(who T) {
	if none := *new(T); d[0] == none || d[0] == who {
		d[0] = who
	} else {
		d[1] = who
	}
}

// others reports whether there was another one, and forgets all.
func (d *denied[T]) others(than T) bool {
	none, was := *new(T), *d
	*d = denied[T]{}
	return was[0] != none && was[0] != than || was[1] != none && was[1] != than
}

// reserves reports whether the session may use its own buffer.
func (th *thread) reserves(c *core) bool {
	if c.reserve.N > 0 {
		return false
	}
	all := th.loop.Pool().Asides()
	return len(th.sessions) <= all || c.holder.reserve.N < max(1, all/max(2, len(th.holders)))
}
