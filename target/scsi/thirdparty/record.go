package thirdparty

import (
	"slices"
	"sync"
	"sync/atomic"

	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/target/scsi/sense"
)

// MaxRecords bounds the copies that a logical unit knows of: those under
// way, and the last ones that have ended, for RECEIVE COPY RESULTS.
const MaxRecords = 64

// Status is COPY OPERATION STATUS (SPC-4 clause 6.18).
type Status byte

// The statuses.
const (
	InProgress Status = 0x00
	Completed  Status = 0x01
	Failed     Status = 0x02
	Partial    Status = 0x03 // without errors, but of less than was asked for
	Terminated Status = 0x60
)

// Record is what is known of a copy that an initiator asked this logical
// unit's copy manager for. Other threads may ask while it runs.
type Record struct {
	asker   Asker
	id      uint32
	listed  bool        // has a list identifier
	action  byte        // service action of the command
	aborted atomic.Bool // by COPY OPERATION ABORT

	mu        sync.Mutex
	status    Status
	bytes     uint64
	segments  uint16   // that were begun
	operation uint16   // OPERATION COUNTER: how often bytes has changed
	sense     []byte   // of what failed, in descriptor format
	ended     []func() // who waits for the end
	dests     []Destination

	about Description
	token *Token // that it made
}

// Description is what is known of a copy when it begins.
type Description struct {
	Shift      uint // TRANSFER COUNT is in blocks of so many bits of bytes; 0: in bytes
	Partial    bool // the token stands for less than was asked for
	Background bool // it goes on when its command has ended
}

// Asker is who asks for copies.
type Asker struct {
	By     any    // whose list identifiers they are; comparable
	Holder string // whom the shares of copies and tokens count for
}

// Records are those of a logical unit, oldest first.
type Records struct {
	mu  sync.Mutex
	all []*Record
}

// Begin makes a record of a command with this service action. The list identifier must not be that of
// a copy of the same initiator that is still under way; one that has ended is
// forgotten for it. Copies under way are shared fairly. Of the ended ones, the
// initiator with most of them loses its oldest. refused counts copies without a place.
func (r *Records) Begin(asker Asker, id uint32, usage, action byte, refused *refusals.Counters) (*Record, *sense.Data) {
	n := &Record{asker: asker, id: id, listed: usage != listIDNone, action: action}
	if !n.listed {
		return n, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := slices.IndexFunc(r.all, func(o *Record) bool { return o.is(asker.By, id) }); at >= 0 {
		if !r.all[at].hasEnded() {
			return nil, sense.CopyInProgress
		}
		r.all = slices.Delete(r.all, at, at+1)
	}
	running, mine, ended := 0, 0, map[string]int{}
	for _, o := range r.all {
		switch {
		case o.hasEnded():
			ended[o.asker.Holder]++
		case o.asker.Holder == asker.Holder:
			mine++
			fallthrough
		default:
			running++
		}
	}
	if !places.Fair(mine, running, MaxRecords) {
		refused.Add(refusals.Copies)
		return nil, sense.InsufficientResources
	}
	if len(r.all) >= MaxRecords {
		r.forgetOne(ended)
	}
	r.all = append(r.all, n)
	return n, nil
}

// forgetOne forgets the oldest copy that has ended of whoever has most of them.
func (r *Records) forgetOne(ended map[string]int) {
	oldest := -1
	for i, o := range r.all {
		if o.hasEnded() && (oldest < 0 || ended[o.asker.Holder] > ended[r.all[oldest].asker.Holder]) {
			oldest = i
		}
	}
	r.all = slices.Delete(r.all, oldest, oldest+1)
}

// Find returns the record of the list identifier of who asks, or nil.
func (r *Records) Find(by any, id uint32) *Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.all {
		if o.is(by, id) {
			return o
		}
	}
	return nil
}

func (r *Record) is(by any, id uint32) bool { return r.asker.By == by && r.id == id }

// Describe sets what is known of the copy when it begins, and the record is listed.
func (r *Record) Describe(about Description) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.about = about
}

func (r *Record) hasEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status != InProgress
}

// Count adds bytes that were copied for a segment descriptor.
func (r *Record) Count(bytes uint64, segment uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes += bytes
	r.segments = max(r.segments, segment+1)
	r.operation++
}

// Fail notes why a segment descriptor could not be processed.
func (r *Record) Fail(s *sense.Data, segment uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sense, r.segments = s.Append(nil, true), segment
}

// End notes how the copy has ended, once.
func (r *Record) End(how Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status != InProgress {
		return
	}
	for _, d := range r.dests {
		d.Written()
	}
	switch r.status = how; {
	case how == Completed && r.about.Partial:
		r.status = Partial
	case how == Failed && r.aborted.Load():
		r.status = Terminated
	}
	for _, f := range r.ended {
		f()
	}
	r.ended = nil
}

// SetToken notes the token that the command made.
func (r *Record) SetToken(t *Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token, r.bytes = t, uint64(t.Size)
}

// WhenEnded calls f when the copy has ended, on any goroutine.
func (r *Record) WhenEnded(f func()) {
	r.mu.Lock()
	if r.status == InProgress {
		r.ended = append(r.ended, f)
		f = nil
	}
	r.mu.Unlock()
	if f != nil {
		f()
	}
}

// Abort has the copy end before its next part (COPY OPERATION ABORT).
func (r *Record) Abort() { r.aborted.Store(true) }

// Aborted reports whether Abort was called.
func (r *Record) Aborted() bool { return r.aborted.Load() }
