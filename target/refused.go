package target

import "lunar/internal/refusals"

// refused counts what an event thread has refused to initiators, or ended of theirs: it
// writes, anyone may read.
type refused struct {
	_   [cacheLine]byte
	own refusals.Counters
	_   [cacheLine]byte
	all *refusals.Counters // the server's
}

func (r *refused) count(why refusals.Reason) {
	r.own.Add(why)
	r.all.Add(why)
}

// counts returns the refusals by reason.
func (r *refused) counts() map[string]uint64 {
	n := make(map[string]uint64)
	for _, why := range refusals.ByThreads() {
		n[why.String()] = r.own.Of(why)
	}
	return n
}
