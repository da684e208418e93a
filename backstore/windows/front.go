package windows

import (
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// front is what event threads see of a store: reads that one of the stores below can serve
// go there, all else runs on a goroutine that blocks.
type front struct {
	engine   *engine
	info     atomic.Pointer[backstore.Info]
	below    []backstore.Store
	counters quiesce.Counters
	// inline serves a read that memory can. direct says which store below serves a read by
	// itself, -1 for none. do performs an operation; it blocks.
	inline func(off int64, data []byte) bool
	direct func(off, n int64) int
	do     func(*backstore.Op) error
}

// Info implements backstore.Store.
func (f *front) Info() backstore.Info { return *f.info.Load() }

// size is the volume's, in bytes.
func (f *front) size() int64 { return f.info.Load().Size }

// resized tells another size. Nobody else changes what the store says meanwhile.
func (f *front) resized(size int64) {
	info := f.Info()
	info.Size = size
	f.info.Store(&info)
}

// Lane implements backstore.Store.
func (f *front) Lane(l *evloop.Loop) (backstore.Lane, error) {
	n := &lane{front: f, loop: l}
	for _, s := range f.below {
		inner, err := s.Lane(l)
		if err != nil {
			n.closeBelow()
			return nil, err
		}
		n.below = append(n.below, inner)
	}
	f.counters.Add(&n.counter, l)
	return n, nil
}

// lane is an event thread's access.
type lane struct {
	*front
	loop    *evloop.Loop
	below   []backstore.Lane
	counter quiesce.Counter
	idle    *job
}

// TryNow implements backstore.Lane.
func (l *lane) TryNow(op *backstore.Op) bool {
	if l.refused(op) {
		return true
	}
	if op.Kind != backstore.Read {
		return false
	}
	if l.inline(op.Off, op.Data) {
		return true
	}
	i := l.direct(op.Off, op.Length())
	return i >= 0 && l.below[i].TryNow(op) && op.Err == nil // an error may be one of this store alone
}

// refused reports whether op has ended already.
func (l *lane) refused(op *backstore.Op) bool {
	op.Err = backstore.Check(op, l.info.Load())
	return op.Err != nil || op.Kind != backstore.Flush && op.Kind != backstore.Wipe && op.Length() == 0
}

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	if l.refused(op) {
		return true
	}
	j := l.job(op)
	if op.Kind == backstore.Read {
		if i := l.direct(op.Off, op.Length()); i >= 0 {
			return j.read(i)
		}
	}
	l.leave(j)
	return false
}

// leave leaves an operation to a goroutine.
func (l *lane) leave(j *job) {
	if j.op.Kind == backstore.Read || j.op.Kind == backstore.Map {
		l.engine.reads.Submit(l.loop, j)
	} else {
		l.engine.changes.Submit(l.loop, j)
	}
}

// Close implements backstore.Lane.
func (l *lane) Close() {
	l.closeBelow()
	l.counters.Remove(&l.counter)
}

func (l *lane) closeBelow() {
	for _, b := range l.below {
		b.Close()
	}
}

// job is an op under way.
type job struct {
	lane *lane
	op   *backstore.Op
	part backstore.Op // of a read that one store below serves
	era  quiesce.Era
	next *job
}

func (l *lane) job(op *backstore.Op) *job {
	j := l.idle
	if j == nil {
		j = &job{lane: l}
		j.part.Done = j.ended
	} else {
		l.idle = j.next
	}
	j.op, j.era, j.next = op, l.counter.Enter(), nil
	return j
}

// read has a store below serve the op, and reports whether it has ended.
func (j *job) read(i int) bool {
	p, l := &j.part, j.lane
	p.Kind, p.Off, p.Data, p.Err = backstore.Read, j.op.Off, j.op.Data, nil
	if !l.below[i].Submit(p) {
		return false
	}
	if p.Err != nil {
		l.leave(j)
		return false
	}
	j.release()
	return true
}

// ended is part.Done. What one store could not read, the whole may.
func (j *job) ended(*backstore.Op) {
	if j.part.Err != nil {
		j.lane.leave(j)
		return
	}
	op := j.release()
	op.Done(op)
}

// Do implements evloop.Job.
func (j *job) Do() { j.op.Err = j.lane.do(j.op) }

// Run implements evloop.Job.
func (j *job) Run() {
	op := j.release()
	op.Done(op)
}

func (j *job) release() *backstore.Op {
	l, op := j.lane, j.op
	l.counter.Exit(j.era)
	j.op, j.part.Data, j.next, l.idle = nil, nil, l.idle, j
	return op
}
