package volumes

import (
	"sync"
	"sync/atomic"

	"lunar/backstore"
)

// Witness notes what the store of an open volume looks like while nobody writes to it,
// for a process that comes after a kill: what differs then was somebody else.
type Witness struct {
	mu    sync.Mutex
	row   Row
	store backstore.Watched // nil: nothing is noted
	on    atomic.Bool       // the row is this process's, which has read what is there
	begun uint64            // changes of the store when it was looked at last
}

// Began reports whether begin was called.
func (w *Witness) Began() bool { return w.on.Load() }

// Begin begins to watch a store, if its row outlives the process.
func (w *Witness) Begin(r Row, store backstore.Store, outlives bool) {
	w.on.Store(true)
	s, ok := store.(backstore.Watched)
	if !ok || !outlives {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.row, w.store = r, s
	s.Watch(r.stateWord())
}

// End is waited for before the row is another's, or says how the volume was closed.
func (w *Witness) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store != nil {
		w.store.Watch(nil)
		w.store = nil
	}
}

// Look notes the stamp of a store that nobody has changed since the last look. It
// reports whether it is to be looked at soon.
//
// INVARIANT: the state is rowSettled only if nothing that the store has begun came
// after the stamp was taken. What begins after Quiet was asked the second time finds
// rowSettling or rowSettled, and makes it rowOpen before it changes anything.
func (w *Witness) Look() (soon bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return false
	}
	state := w.row.stateWord()
	if state.Load() == rowSettled || !w.store.Exact() {
		return false
	}
	begun, quiet := w.store.Quiet()
	if was := w.begun; !quiet || begun != was {
		w.begun = begun
		return true
	}
	state.Store(rowSettling)
	if again, quiet := w.store.Quiet(); !quiet || again != begun {
		state.Store(rowOpen)
		return true
	}
	stamp, err := w.store.Stamp()
	if err != nil {
		state.Store(rowOpen)
		return true
	}
	w.row.Note(stamp)
	state.CompareAndSwap(rowSettling, rowSettled)
	return true
}
