package tier

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
)

// witness notes what the store of an open volume looks like while nobody writes to it,
// for a process that comes after a kill: what differs then was somebody else.
type witness struct {
	mu    sync.Mutex
	store backstore.Watched // nil: nothing is noted
	on    atomic.Bool       // the row is this process's, which has read what is there
	begun uint64            // changes of the store when it was looked at last
}

// While a store is being written it is looked at in each busyWatch, else in each
// idleWatch. In each heartbeat all rows get the time: see evidence.Noted.
const (
	busyWatch = 50 * time.Millisecond
	idleWatch = 500 * time.Millisecond
	heartbeat = 250 * time.Millisecond
)

// begin begins to watch.
func (w *witness) begin(v *volume) {
	w.on.Store(true)
	s, ok := v.store.(backstore.Watched)
	if !ok || v.cache.config.Segment == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store = s
	s.Watch(v.row.stateWord())
}

// end is waited for before the row is another's, or says how the volume was closed.
func (w *witness) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store != nil {
		w.store.Watch(nil)
		w.store = nil
	}
}

// look notes the stamp of a store that nobody has changed since the last look. It reports whether it is to be looked at soon.
//
// INVARIANT: the state is rowSettled only if nothing that the store has begun came
// after the stamp was taken. What begins after Quiet was asked the second time finds
// rowSettling or rowSettled, and makes it rowOpen before it changes anything.
func (w *witness) look(v *volume) (soon bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.store == nil {
		return false
	}
	state := v.row.stateWord()
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
	v.row.note(stamp)
	state.CompareAndSwap(rowSettling, rowSettled)
	return true
}

// witnesses look at the stores of a Cache's volumes until they are stopped. The heartbeat
// is apart, for a look may wait for a device.
type witnesses struct {
	alive []row // that the heartbeat is for
	quit  chan struct{}
	once  sync.Once
	tasks sync.WaitGroup
}

// watchStores begins if there is a segment.
func (c *Cache) watchStores() {
	if c.config.Segment == nil {
		return
	}
	w := &c.witnesses
	w.quit = make(chan struct{})
	w.tasks.Go(func() { w.every(c.attest) })
	w.tasks.Go(func() { w.every(c.beat) })
}

// every does something, and again after the time that it returns.
func (w *witnesses) every(do func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-timer.C:
			timer.Reset(do())
		}
	}
}

// beat notes for all open volumes that the process is alive. It waits for nobody: who
// looks through the whole cache under c.mu takes longer than evidence allows.
func (c *Cache) beat() time.Duration {
	w := &c.witnesses
	if c.mu.TryLock() {
		w.alive = c.appendAlive(w.alive[:0])
		c.mu.Unlock()
	}
	now := time.Now().UnixNano()
	for _, r := range w.alive {
		r.beat(now)
	}
	return heartbeat
}

// appendAlive appends the rows that the heartbeat is for. The caller holds mu.
func (c *Cache) appendAlive(rows []row) []row {
	for _, v := range c.mu.volumes {
		if v != nil && v.witness.on.Load() {
			rows = append(rows, v.row)
		}
	}
	for id := range c.mu.met {
		if r, ok := c.table.find(id); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// attest looks at all open volumes.
func (c *Cache) attest() time.Duration {
	c.mu.Lock()
	open := slices.Clone(c.mu.volumes)
	c.mu.Unlock()
	pause := idleWatch
	for _, v := range open {
		if v != nil && v.witness.look(v) {
			pause = busyWatch
		}
	}
	return pause
}

func (w *witnesses) stop() {
	if w.quit == nil {
		return
	}
	w.once.Do(func() { close(w.quit) })
	w.tasks.Wait()
}
