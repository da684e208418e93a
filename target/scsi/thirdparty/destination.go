package thirdparty

import "lunar/target/scsi/sense"

// A copy that has ended well may have left data in the volatile cache of its
// destination, which cannot write them later. Its initiator hears of that by what is
// known of the copy, because its session may be gone: SPC-4 clause 5.17.4.3 has no
// deferred errors of copies in the background.

// Destination is a logical unit that a copy writes to.
type Destination interface {
	// Is reports whether it is the same logical unit.
	Is(Destination) bool
	// Written follows the last write of the copy.
	Written()
	// Lost returns why data of the copy are not stable and may never be, nil if there is
	// no sign of that; a flush that succeeds later makes up for it.
	Lost() *sense.Data
}

// Remember notes a destination before anything is written to it.
func (r *Record) Remember(d Destination) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.dests {
		if other.Is(d) {
			return
		}
	}
	r.dests = append(r.dests, d)
}

// outcome returns the status of the copy, and the sense data of what failed in
// descriptor format. The caller holds mu.
func (r *Record) outcome() (Status, []byte) {
	if r.status != Completed && r.status != Partial {
		return r.status, r.sense
	}
	for _, d := range r.dests {
		if lost := d.Lost(); lost != nil {
			s := *lost
			s.Deferred = false
			return Failed, s.Append(nil, true)
		}
	}
	return r.status, r.sense
}
