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
	denied           denied[*quota]
	strange          bool
}

// holderKey is what holders are told apart by.
type holderKey struct {
	proof login.Proof
	name  string
	host  netip.Addr // without a proof
	away  bool       // its sessions are at other servers: what they have here never waits for what others have
}

func holderOf(i *Initiator) holderKey {
	if i.Proof.Proven() {
		return holderKey{proof: i.Proof, name: i.Name}
	}
	return holderKey{host: places.Host(i.Addr)}
}

// quota is what a session has of an event thread's buffers.
type quota struct {
	charged buf.Account // of buffers that tasks hold or the transport still has to send
	reserve buf.Account // of those, apart, that are the session's own (memory.go)
	holder  *holder     // whose part of the thread's buffers it uses
}

// quotas share an event thread's buffers out.
type quotas struct {
	pool      *buf.Pool
	sessions  int
	holders   map[holderKey]*holder
	denied    denied[*holder] // that got no buffer since relieve last looked
	exhausted bool            // the pool had no buffer for somebody since feed last ran
}

// open gives a session that begins on the thread its holder.
func (all *quotas) open(q *quota, key holderKey) {
	h := all.holders[key]
	if h == nil {
		h = &holder{strange: !key.proof.Proven()}
		all.holders[key] = h
	}
	h.sessions++
	all.sessions++
	q.holder, q.charged.Of, q.reserve.Of = h, &h.charged, &h.reserve
}

// close follows the end of a session on the thread. What its transport has yet to
// give back is counted nowhere else.
func (all *quotas) close(q *quota, key holderKey) {
	all.sessions--
	if q.holder.sessions--; q.holder.sessions == 0 {
		delete(all.holders, key)
	}
}

// get returns a buffer of n bytes of what all share, or else of the session's own.
func (all *quotas) get(q *quota, n int) *buf.Ref {
	if all.allots(q, n) {
		if ref := all.pool.GetFor(&q.charged, n); ref != nil {
			return ref
		}
		all.exhausted = true
	}
	return all.fallBack(q, n)
}

// allots reports whether a session may have n bytes more of what all share.
func (all *quotas) allots(q *quota, n int) bool {
	if all.exhausted {
		return false
	}
	h, most := q.holder, max(all.pool.Unreserved(), leastPart)
	if h.strange && !within(&q.charged, n, most) {
		return false
	}
	if h.strange && len(all.holders) == 1 {
		most *= aloneShare
	}
	return within(&h.charged, n, most)
}

// within reports whether n bytes more are within a part, which none at all is short of.
func within(a *buf.Account, n, most int) bool { return a.Used == 0 || a.Used+n <= most }

// fallBack returns the session's own buffer if it is free.
func (all *quotas) fallBack(q *quota, n int) *buf.Ref {
	if all.reserves(q) {
		if ref := all.pool.GetAside(n); ref != nil {
			ref.Charge(&q.reserve)
			return ref
		}
	}
	all.denied.add(q.holder)
	q.holder.denied.add(q)
	return nil
}

// reserves reports whether the session may use its own buffer.
func (all *quotas) reserves(q *quota) bool {
	if q.reserve.N > 0 {
		return false
	}
	blocks := all.pool.Asides()
	return all.sessions <= blocks || q.holder.reserve.N < max(1, blocks/max(2, len(all.holders)))
}

// largest is the holder of most buffers, nil if nobody holds any.
func (all *quotas) largest() (most *holder) {
	for _, h := range all.holders {
		if h.charged.Used > 0 && (most == nil || h.charged.Used > most.charged.Used) {
			most = h
		}
	}
	return most
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

func releaseRef(ref *buf.Ref) {
	if ref != nil {
		ref.Release()
	}
}

// move copies unless the data is there already.
func move(dst, src []byte) {
	if len(src) > 0 && &dst[0] != &src[0] {
		buf.Copy(dst, src)
	}
}
