package backstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"lunar/internal/evloop"
)

// Slot is a Store that stands for another one, which can be exchanged while event
// threads use it, as a disk in its slot can: what is under way ends before, what
// comes meanwhile waits. It owns the store that it has.
type Slot struct {
	store      atomic.Pointer[slotted]
	exchanging sync.Mutex
	asking     sync.RWMutex            // held shared by who asks the store besides lanes, and while there is none
	changes    atomic.Pointer[tracked] // where changes are noted; nil: nowhere. Lanes look when they are opened
	mu         struct {
		sync.Mutex
		lanes     map[*slotLane]struct{}
		suspended bool // no lane may be opened: new lanes wait
	}
}

type slotted struct{ Store }

// errExchanging answers who asks a store while it is being exchanged.
var errExchanging = errors.New("the backing store is being opened anew")

// NewSlot returns a Slot with a store.
func NewSlot(store Store) *Slot {
	s := &Slot{}
	s.mu.lanes = make(map[*slotLane]struct{})
	s.store.Store(&slotted{store})
	return s
}

// Content returns the store that the Slot has now.
func (s *Slot) Content() Store { return s.store.Load().Store }

// Empty reports whether the last Exchange has left no store.
func (s *Slot) Empty() bool {
	_, empty := s.Content().(*noStore)
	return empty
}

// Exchange calls exchange when all operations on the store have ended and its lanes
// are closed; what exchange returns takes its place, with an error or without. nil
// is no store: all operations fail with the error until another Exchange. Operations
// that come meanwhile wait for the end of that. An error of ctx tells that something
// did not end in time; exchange was not called then, and the store goes on.
// Exchange must not be called on an event thread. A lane's thread runs until the lane is
// closed, which may be meanwhile: nobody waits for that lane then.
func (s *Slot) Exchange(ctx context.Context, exchange func(Store) (Store, error)) error {
	s.exchanging.Lock()
	defer s.exchanging.Unlock()
	for l, drained := range s.suspend() {
		select {
		case <-drained:
		case <-l.gone:
		case <-ctx.Done():
			s.resume()
			return fmt.Errorf("%s: operations under way have not ended: %w", s.Info().Describe, ctx.Err())
		}
	}
	for _, l := range s.open() {
		l.do(l.let)
	}
	s.asking.Lock()
	before := s.Content()
	next, err := exchange(before)
	if next == nil {
		next = &noStore{s.Info(), fmt.Errorf("%w: %w", ErrGone, err)}
	}
	s.store.Store(&slotted{next})
	if next != before {
		for _, c := range s.tracked() {
			c.All()
		}
	}
	s.asking.Unlock()
	s.resume()
	return err
}

// suspend keeps lanes from being opened, and suspends those that are open. Each of them
// closes its channel when its last operation has ended.
func (s *Slot) suspend() (drained map[*slotLane]chan struct{}) {
	s.mu.Lock()
	s.mu.suspended = true
	s.mu.Unlock()
	drained = make(map[*slotLane]chan struct{})
	for _, l := range s.open() {
		ended := make(chan struct{})
		l.loop.Post(evloop.Func(func() { l.suspend(ended) }))
		drained[l] = ended
	}
	return drained
}

// resume has all lanes go on, with the store that there is now.
func (s *Slot) resume() {
	s.mu.Lock()
	s.mu.suspended = false
	s.mu.Unlock()
	for _, l := range s.open() {
		l.do(l.resume)
	}
}

// open returns the lanes that are open.
func (s *Slot) open() []*slotLane {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.mu.lanes))
}

// Info implements Store.
func (s *Slot) Info() Info { return s.store.Load().Info() }

// Close implements Store.
func (s *Slot) Close() error { return s.Content().Close() }

// Lane implements Store.
func (s *Slot) Lane(l *evloop.Loop) (Lane, error) {
	lane := &slotLane{slot: s, loop: l, gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if lane.suspended = s.mu.suspended; !lane.suspended {
		if err := lane.open(); err != nil {
			return nil, err
		}
	}
	s.mu.lanes[lane] = struct{}{}
	return lane, nil
}

// Dirty implements WriteBack for a store that does.
func (s *Slot) Dirty() int64 {
	if w, ok := s.Content().(WriteBack); ok && s.asking.TryRLock() {
		defer s.asking.RUnlock()
		return w.Dirty()
	}
	return 0
}

// Keeps implements DirtyCloser for a store that does.
func (s *Slot) Keeps() bool {
	a, ok := s.Content().(DirtyCloser)
	return ok && a.Keeps()
}

// CloseDirty implements DirtyCloser; any other store is closed.
func (s *Slot) CloseDirty(discard bool) (dirty int64, err error) {
	if a, ok := s.Content().(DirtyCloser); ok {
		return a.CloseDirty(discard)
	}
	return 0, s.Close()
}

// Resize implements Resizer for a store that does.
func (s *Slot) Resize(size int64) error {
	s.asking.RLock()
	defer s.asking.RUnlock()
	return Resize(s.Content(), size)
}

// Space implements Spacious for a store that does.
func (s *Slot) Space() (Space, error) {
	if !s.asking.TryRLock() { // an event thread may ask, which must not wait
		return Space{}, errExchanging
	}
	defer s.asking.RUnlock()
	return SpaceOf(s.Content())
}

// Temperature implements Thermal for a store that does.
func (s *Slot) Temperature() (int, error) {
	if !s.asking.TryRLock() {
		return 0, errExchanging
	}
	defer s.asking.RUnlock()
	return TemperatureOf(s.Content())
}

// slotLane is an event thread's way into a Slot.
type slotLane struct {
	slot      *Slot
	loop      *evloop.Loop
	below     Lane   // nil while there is none: the lane is suspended then
	lender    Lender // below, if it is one
	running   int    // operations that below has
	suspended bool
	gone      chan struct{} // closed with the lane, whose thread may end then
	waiting   []*Op         // that came while it is suspended
	drained   chan struct{} // to be closed when nothing is running
	done      func(*Op)     // ended, made when the lane is opened
}

func (l *slotLane) open() (err error) {
	if l.below, err = l.slot.Content().Lane(l.loop); err == nil {
		l.lender, _ = l.below.(Lender)
		l.note(l.slot.tracked())
	}
	return err
}

// note has what alters the store noted.
func (l *slotLane) note(all tracked) {
	l.done = l.ended
	if len(all) == 0 {
		return
	}
	l.below = &notingLane{l.below, all}
	l.done = func(op *Op) {
		all.note(op)
		l.ended(op)
	}
}

// TryNow implements Lane.
func (l *slotLane) TryNow(op *Op) bool { return !l.suspended && l.below.TryNow(op) }

// Submit implements Lane.
func (l *slotLane) Submit(op *Op) bool {
	if l.suspended {
		l.waiting = append(l.waiting, op)
		return false
	}
	op.owner, op.Done = op.Done, l.done
	if l.below.Submit(op) {
		op.Done, op.owner = op.owner, nil
		return true
	}
	l.running++
	return false
}

// ended is Done of what the store has.
func (l *slotLane) ended(op *Op) {
	op.Done, op.owner = op.owner, nil
	l.running--
	l.tell()
	op.Done(op)
}

// Cancel takes an operation back that a lane has not begun, because its Slot holds
// operations, and reports whether it did: the operation is the submitter's again, and
// Done is not called.
func Cancel(l Lane, op *Op) bool {
	s, ok := l.(*slotLane)
	if !ok {
		return false
	}
	i := slices.Index(s.waiting, op)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// LenderOf returns the lane as a Lender, for use at once; nil if what it leads to
// lends nothing now.
func LenderOf(l Lane) Lender {
	if s, ok := l.(*slotLane); ok {
		if s.suspended {
			return nil
		}
		return s.lender
	}
	lender, _ := l.(Lender)
	return lender
}

// Close implements Lane.
func (l *slotLane) Close() {
	l.let()
	close(l.gone)
	l.slot.mu.Lock()
	delete(l.slot.mu.lanes, l)
	l.slot.mu.Unlock()
}

// do runs f on the lane's thread and waits for it, or until the lane is closed.
func (l *slotLane) do(f func()) {
	done := make(chan struct{})
	l.loop.Post(evloop.Func(func() {
		defer close(done)
		f()
	}))
	select {
	case <-done:
	case <-l.gone:
	}
}

// suspend makes operations wait that come from now on, and closes drained when all
// earlier ones have ended.
func (l *slotLane) suspend(drained chan struct{}) {
	l.suspended, l.drained = true, drained
	l.tell()
}

func (l *slotLane) tell() {
	if l.drained != nil && l.running == 0 {
		close(l.drained)
		l.drained = nil
	}
}

// let closes the store's lane.
func (l *slotLane) let() {
	if l.below != nil {
		l.below.Close()
	}
	l.below, l.lender = nil, nil
}

// resume begins what has waited.
func (l *slotLane) resume() {
	select {
	case <-l.gone:
		return
	default:
	}
	if l.below == nil {
		if err := l.open(); err != nil {
			l.below = noLane{err}
		}
	}
	l.suspended, l.drained = false, nil
	waiting := l.waiting
	l.waiting = nil
	for _, op := range waiting {
		if l.TryNow(op) || l.Submit(op) {
			op.Done(op)
		}
	}
}

// noStore is the content of an empty Slot.
type noStore struct {
	info Info
	err  error
}

// Info implements Store: what the store was that should be there.
func (n *noStore) Info() Info { return n.info }

// Lane implements Store.
func (n *noStore) Lane(*evloop.Loop) (Lane, error) { return nil, n.err }

// Close implements Store.
func (n *noStore) Close() error { return nil }

// noLane leads nowhere.
type noLane struct{ err error }

// TryNow implements Lane.
func (n noLane) TryNow(op *Op) bool {
	op.Err = n.err
	return true
}

// Submit implements Lane.
func (n noLane) Submit(op *Op) bool { return n.TryNow(op) }

// Close implements Lane.
func (n noLane) Close() {}
