package scsi

import (
	"slices"
	"sync"
	"sync/atomic"

	"lunar/internal/places"
	"lunar/internal/refusals"
)

// maxCopyRecords bounds the copies that a logical unit knows of: those under
// way, and the last ones that have ended, for RECEIVE COPY RESULTS.
const maxCopyRecords = 64

// copyStatus is COPY OPERATION STATUS (SPC-4 clause 6.18).
type copyStatus byte

const (
	copyInProgress copyStatus = 0x00
	copyCompleted  copyStatus = 0x01
	copyFailed     copyStatus = 0x02
	copyPartial    copyStatus = 0x03 // without errors, but of less than was asked for
	copyTerminated copyStatus = 0x60
)

// copyRecord is what is known of a copy that an initiator asked this logical
// unit's copy manager for. Other threads may ask while it runs.
type copyRecord struct {
	by      asker
	holder  string // see Nexus.Holder
	id      uint32
	listed  bool        // has a list identifier
	action  byte        // service action of the command
	aborted atomic.Bool // by COPY OPERATION ABORT

	mu        sync.Mutex
	status    copyStatus
	bytes     uint64
	segments  uint16   // that were begun
	operation uint16   // OPERATION COUNTER: how often bytes has changed
	sense     []byte   // of what failed, in descriptor format
	ended     []func() // who waits for the end
	dests     []copyDest

	// Of the commands with tokens.
	shift      uint // TRANSFER COUNT is in blocks of so many bits of bytes; 0: in bytes
	partial    bool // the token stands for less than was asked for
	background bool
	token      *rodToken // that it made
}

// copyRecords are those of a logical unit, oldest first.
type copyRecords struct {
	mu  sync.Mutex
	all []*copyRecord
}

// begin makes a record for the command. The list identifier must not be that of
// a copy of the same initiator that is still under way; one that has ended is
// forgotten for it. Copies under way are shared fairly, and of those that have
// ended whoever has most loses the oldest.
func (r *copyRecords) begin(c *Command, id uint32, usage byte) (*copyRecord, *Sense) {
	n := &copyRecord{by: c.Nexus.asker(), holder: c.Nexus.holder(), id: id, listed: usage != listIDNone, action: c.CDB[1] & 0x1f}
	if !n.listed {
		return n, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.IndexFunc(r.all, func(o *copyRecord) bool { return o.is(n.by, id) }); at >= 0 {
		if !r.all[at].hasEnded() {
			return nil, CopyInProgress
		}
		r.all = slices.Delete(r.all, at, at+1)
	}
	running, mine, ended := 0, 0, map[string]int{}
	for _, o := range r.all {
		switch {
		case o.hasEnded():
			ended[o.holder]++
		case o.holder == n.holder:
			mine++
			fallthrough
		default:
			running++
		}
	}
	if !places.Fair(mine, running, maxCopyRecords) {
		c.Nexus.LU.config.Refusals.Add(refusals.Copies)
		return nil, InsufficientResources
	}
	if len(r.all) >= maxCopyRecords {
		r.forgetOne(ended)
	}
	r.all = append(r.all, n)
	return n, nil
}

// forgetOne forgets the oldest copy that has ended of whoever has most of them.
func (r *copyRecords) forgetOne(ended map[string]int) {
	oldest := -1
	for i, o := range r.all {
		if o.hasEnded() && (oldest < 0 || ended[o.holder] > ended[r.all[oldest].holder]) {
			oldest = i
		}
	}
	r.all = slices.Delete(r.all, oldest, oldest+1)
}

// find returns the record of an initiator's list identifier, or nil.
func (r *copyRecords) find(by asker, id uint32) *copyRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all {
		if o.is(by, id) {
			return o
		}
	}
	return nil
}

func (r *copyRecord) is(by asker, id uint32) bool { return r.by == by && r.id == id }

// describe sets what is known of the copy when it begins, and the record is listed.
func (r *copyRecord) describe(set func(*copyRecord)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set(r)
}

func (r *copyRecord) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status != copyInProgress
}

// count adds bytes that were copied for a segment descriptor.
func (r *copyRecord) count(bytes uint64, segment uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += bytes
	r.segments = max(r.segments, segment+1)
	r.operation++
}

// fail notes why a segment descriptor could not be processed.
func (r *copyRecord) fail(s *Sense, segment uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sense, r.segments = s.Append(nil, true), segment
}

// end notes how the copy has ended, once.
func (r *copyRecord) end(how copyStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != copyInProgress {
		return
	}
	r.written()
	switch r.status = how; {
	case how == copyCompleted && r.partial:
		r.status = copyPartial
	case how == copyFailed && r.aborted.Load():
		r.status = copyTerminated
	}
	for _, f := range r.ended {
		f()
	}
	r.ended = nil
}

// setToken notes the token that the command made.
func (r *copyRecord) setToken(t *rodToken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token, r.bytes = t, uint64(t.size)
}
