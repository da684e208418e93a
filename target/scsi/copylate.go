package scsi

// A copy that has ended well may have left data in the volatile cache of its
// destination, which cannot write them later. Its initiator hears of that by what is
// known of the copy, because its session may be gone: SPC-4 clause 5.17.4.3 has no
// deferred errors of copies in the background.

// copyDest is a destination of a copy.
type copyDest struct {
	lu     *LogicalUnit
	before *deferredError // the last one when the copy began
	moment uint64         // of the copy's last write, if it may be volatile; else 0
}

// remember notes a destination before anything is written to it.
func (r *copyRecord) remember(lu *LogicalUnit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.dests {
		if r.dests[i].lu == lu {
			return
		}
	}
	r.dests = append(r.dests, copyDest{lu: lu, before: lu.lastDeferred.Load()})
}

// written notes that nothing more is written. The caller holds mu.
func (r *copyRecord) written() {
	for i := range r.dests {
		d := &r.dests[i]
		if d.lu.state.Load().WriteCache {
			d.moment = d.lu.stability.now()
		}
	}
}

// lost returns why data of the copy are not stable and may never be, nil if there is
// no sign of that; a flush that succeeds later makes up for it.
func (d *copyDest) lost() *deferredError {
	e := d.lu.lastDeferred.Load()
	if e == nil || e == d.before || d.moment == 0 || d.lu.stability.covers(d.moment) || d.lu.stability.covers(e.moment) {
		return nil
	}
	return e
}

// outcome returns the status of the copy, and the sense data of what failed in
// descriptor format. The caller holds mu.
func (r *copyRecord) outcome() (copyStatus, []byte) {
	if r.status != copyCompleted && r.status != copyPartial {
		return r.status, r.sense
	}
	for i := range r.dests {
		if e := r.dests[i].lost(); e != nil {
			s := e.sense
			s.Deferred = false
			return copyFailed, s.Append(nil, true)
		}
	}
	return r.status, r.sense
}
