package rbd

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/internal/changes"
	"lunar/internal/evloop"
	"lunar/internal/invariants"
	"lunar/internal/quiesce"
)

// zeroSpan is how much is zeroed at once, in bytes: each object of it is an operation
// of the cluster's.
const zeroSpan = 64 << 20

// lane is one event thread's access to an image.
type lane struct {
	store   *Store
	loop    *evloop.Loop
	station *station // nil until something is under way for the first time
	running int
	counter quiesce.Counter // counts what is running
	count   *changes.Count
}

// Lane implements backstore.Store.
func (s *Store) Lane(l *evloop.Loop) (backstore.Lane, error) {
	if l.Workers() == nil {
		return nil, fmt.Errorf("%s on event loop %q: it has no workers for calls that block", s.what, l.Name())
	}
	lane := &lane{store: s, loop: l, count: s.changes.Add()}
	s.counters.Add(&lane.counter, l)
	return lane, nil
}

// TryNow implements backstore.Lane. Only what needs no cluster ends here.
func (l *lane) TryNow(op *backstore.Op) bool {
	op.Err = backstore.Check(op, l.store.info.Load())
	return op.Err != nil || op.Kind == backstore.Flush || op.Kind == backstore.Wipe || op.Length() == 0
}

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	if invariants.Enabled {
		invariants.Assert(l.loop.OnThread(), "rbd: Submit on the loop's thread")
	}
	if l.TryNow(op) {
		return true
	}
	if l.station == nil {
		if l.station, op.Err = l.store.clients.join(l.loop); op.Err != nil {
			return true
		}
	}
	sl := slot{op: op, by: l, era: l.counter.Enter()}
	if op.Kind.Changes() {
		l.count.Begin()
	}
	l.running++
	if op.Kind == backstore.Map {
		l.loop.Workers().Submit(l.loop, &mapping{slot: sl, lane: l})
		return false
	}
	if errno := l.begin(&sl); errno != 0 {
		op.Err = l.store.failed(op, errno)
		l.rest(&sl)
		return true
	}
	return false
}

// begin starts what is left of the operation, or a part of it.
func (l *lane) begin(s *slot) unix.Errno {
	op, io := s.op, IO{Off: s.op.Off + s.done}
	switch op.Kind {
	case backstore.Read, backstore.Write:
		io.Kind, io.Len, io.Data = ReadIO, int64(len(op.Data)), unsafe.Pointer(unsafe.SliceData(op.Data))
		if op.Kind == backstore.Write {
			io.Kind = WriteIO
		}
	default: // a discard of less than an object would keep the data
		io.Kind, io.Len = ZeroIO, min(op.Len-s.done, zeroSpan-io.Off%zeroSpan)
	}
	s.n = io.Len
	return l.station.start(l.store.image, s, io)
}

// settle goes on with an operation of which a part has ended.
func (l *lane) settle(s slot, result int64) {
	op := s.op
	switch {
	case result < 0:
		op.Err = l.store.failed(op, unix.Errno(-result))
	case op.Kind == backstore.Read && result < s.n:
		op.Err = fmt.Errorf("read at byte %d of %s: found %d bytes of %d, for somebody cut the image: %w", op.Off, l.store.what, result, s.n, backstore.ErrOutOfRange)
	case op.Kind != backstore.Read && op.Kind != backstore.Write:
		if s.done += s.n; s.done < op.Len {
			errno := l.begin(&s)
			if errno == 0 {
				return
			}
			op.Err = l.store.failed(op, errno)
		}
	}
	l.rest(&s)
	op.Done(op)
}

// rest is what an operation ends with.
func (l *lane) rest(s *slot) {
	if s.op.Kind.Changes() {
		l.count.End()
	}
	l.running--
	l.counter.Exit(s.era)
}

// Close implements backstore.Lane.
func (l *lane) Close() {
	if l.running > 0 {
		panic(fmt.Sprintf("rbd: lane of %s closed with %d ops running", l.store.what, l.running))
	}
	if l.station != nil {
		l.store.clients.leave(l.station)
	}
	l.store.counters.Remove(&l.counter)
	l.count.Remove()
}

// mapSpan bounds how far one Map looks, in bytes: of a part of it each object may be asked.
const mapSpan = 1 << 30

// mapping asks where there is data, which librbd does in blocking calls only.
type mapping struct {
	slot
	lane   *lane
	mapped bool
	n      int64
	err    error
}

// Do implements evloop.Job.
func (m *mapping) Do() {
	m.mapped, m.n, m.err = m.lane.store.image.Mapped(m.op.Off, min(m.op.Len, mapSpan))
}

// Run implements evloop.Job.
func (m *mapping) Run() {
	op := m.op
	if op.Mapped, op.Len = m.mapped, m.n; m.err != nil {
		op.Err = m.lane.store.failed(op, m.err)
	}
	m.lane.rest(&m.slot)
	op.Done(op)
}
