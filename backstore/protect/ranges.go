package protect

import (
	"sync"

	"lunar/internal/evloop"
)

// ranges keep a block from being read or written while another operation writes
// it, on whatever event thread: its data and its tuple are two operations, which
// must not mix with another's. Who has to wait does so in order of arrival, behind
// everybody before it that it must not overtake. There are as many entries as
// operations under way, so lists will do.
type ranges struct {
	mu      sync.Mutex // never held over a call that blocks
	granted []*claim
	waiting []*claim
}

// claim is an operation's part of the volume.
type claim struct {
	from, to int64
	writes   bool
	loop     *evloop.Loop
	then     evloop.Task // run on loop when the claim is granted after a wait
}

// conflicts reports whether a must end before b begins.
func (a *claim) conflicts(b *claim) bool {
	return (a.writes || b.writes) && a.from < b.to && b.from < a.to
}

// take takes the claim, or returns false and runs c.then later.
func (r *ranges) take(c *claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if barred(c, r.granted) || barred(c, r.waiting) {
		r.waiting = append(r.waiting, c)
		return false
	}
	r.granted = append(r.granted, c)
	return true
}

func barred(c *claim, by []*claim) bool {
	for _, other := range by {
		if other.conflicts(c) {
			return true
		}
	}
	return false
}

// release gives a claim back and lets in who waited for it.
func (r *ranges) release(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.granted {
		if other == c {
			last := len(r.granted) - 1
			r.granted[i], r.granted[last] = r.granted[last], nil
			r.granted = r.granted[:last]
			break
		}
	}
	still := r.waiting[:0]
	for _, w := range r.waiting {
		if barred(w, r.granted) || barred(w, still) {
			still = append(still, w)
			continue
		}
		r.granted = append(r.granted, w)
		w.loop.Post(w.then)
	}
	clear(r.waiting[len(still):])
	r.waiting = still
}
