package protect

import (
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/evloop"
)

// A region's word: how many changes of it are under way, and its state.
const (
	// dirty: data and tuples may disagree after a crash, and the log on disk says so.
	dirty = 1 << 31
	// touched: a change began or ended since the last flush began.
	touched = 1 << 30
	// marking: the log is being told.
	marking = 1 << 29
)

// flushEvery is how often regions are cleaned while there are changes, so that a
// crash leaves few of them to look at.
const flushEvery = 5 * time.Second

// regions tell which parts of a volume may have data and tuples that disagree. A
// change enters the regions that it touches before it begins: at once where they
// are dirty already, else after the log on disk says that they are.
//
// INVARIANT: a region that is being changed, or was since the last flush of both
// stores, is dirty on disk. A region that is dirty on disk need not be so here.
type regions struct {
	words    []atomic.Uint32
	shift    uint // of the size of a region in bytes
	log      *journal
	flushing atomic.Bool                 // a flush is under way that will clean regions
	flushed  atomic.Int64                // when the last one ended, on the loops' clock
	unsound  atomic.Bool                 // a flush has failed: what is stable is not known any more
	reserve  func(first, last int) error // finds room for the tuples of regions

	logging sync.Mutex // guards log while regions are in use
	mu      sync.Mutex // guards what is below; never held over a call that blocks
	waiting []*entry
	closed  bool
	more    chan struct{} // of size 1: there is something in waiting
	ended   sync.WaitGroup
}

// entry is a change that wants to enter its regions.
type entry struct {
	first, last int
	loop        *evloop.Loop
	then        evloop.Task // run on loop when it has, or when err says why not
	err         error
}

func newRegions(log *journal, shift uint, reserve func(first, last int) error) *regions {
	r := &regions{words: make([]atomic.Uint32, maxRegions), shift: shift, log: log, reserve: reserve, more: make(chan struct{}, 1)}
	r.ended.Go(r.mark)
	return r
}

// span returns the regions of n bytes at off, n positive.
func (r *regions) span(off, n int64) (first, last int) {
	return int(off >> r.shift), int((off + n - 1) >> r.shift)
}

// enter lets a change begin, or returns false and runs e.then later.
func (r *regions) enter(e *entry) bool {
	for i := e.first; i <= e.last; i++ {
		if !r.tryEnter(&r.words[i]) {
			r.leave(e.first, i-1)
			r.queue(e)
			return false
		}
	}
	return true
}

func (r *regions) tryEnter(w *atomic.Uint32) bool {
	for {
		old := w.Load()
		if old&dirty == 0 {
			return false
		}
		if w.CompareAndSwap(old, (old|touched)+1) {
			return true
		}
	}
}

// leave ends a change of the regions.
func (r *regions) leave(first, last int) {
	for i := first; i <= last; i++ {
		r.words[i].Or(touched)
		r.words[i].Add(^uint32(0))
	}
}

func (r *regions) queue(e *entry) {
	r.mu.Lock()
	r.waiting = append(r.waiting, e)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// mark tells the log of regions that become dirty, several at a time.
func (r *regions) mark() {
	for range r.more {
		for {
			r.mu.Lock()
			batch, closed := r.waiting, r.closed
			r.waiting = nil
			r.mu.Unlock()
			if len(batch) == 0 {
				if closed {
					return
				}
				break
			}
			r.admit(batch)
		}
	}
}

// admit finds room, writes the log and lets the entries in.
func (r *regions) admit(batch []*entry) {
	for _, e := range batch {
		if e.err = r.reserve(e.first, e.last); e.err == nil {
			r.each(e, func(w *atomic.Uint32) { w.Or(marking) })
		}
	}
	r.logging.Lock()
	err := r.log.write(func(i int) bool { return r.words[i].Load()&(dirty|marking) != 0 })
	r.logging.Unlock()
	for _, e := range batch {
		if e.err != nil {
			continue
		}
		if e.err = err; err == nil {
			r.each(e, func(w *atomic.Uint32) { w.Or(dirty | touched); w.Add(1) })
		}
	}
	for _, e := range batch {
		r.each(e, func(w *atomic.Uint32) { w.And(^uint32(marking)) })
		e.loop.Post(e.then)
	}
}

// each calls do with the words of an entry's regions.
func (r *regions) each(e *entry, do func(*atomic.Uint32)) {
	for i := e.first; i <= e.last; i++ {
		do(&r.words[i])
	}
}

// beginFlush says whether the flush that begins at now is to clean regions.
func (r *regions) beginFlush(now int64) bool {
	if now-r.flushed.Load() < int64(flushEvery) || !r.flushing.CompareAndSwap(false, true) {
		return false
	}
	for i := range r.words {
		if r.words[i].Load()&touched != 0 {
			r.words[i].And(^uint32(touched))
		}
	}
	return true
}

// endFlush cleans the regions that nothing has changed since the flush began, if
// both stores were flushed.
func (r *regions) endFlush(now int64, ok bool) {
	for i := range r.words {
		if ok && r.words[i].Load() == dirty {
			r.words[i].CompareAndSwap(dirty, 0)
		}
	}
	r.flushed.Store(now)
	r.flushing.Store(false)
}

// close writes the log for the last time. Nothing is under way. All regions are clean
// if everything is stable now; otherwise those that were dirty stay so. Of a volume that
// was only read the log stays as it was found.
func (r *regions) close(stable, readOnly bool) error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	close(r.more)
	r.ended.Wait()
	if readOnly {
		return nil
	}
	clean := stable && !r.unsound.Load()
	return r.log.write(func(i int) bool { return !clean && r.words[i].Load()&dirty != 0 })
}

// dirtyAll makes all regions dirty, on disk as well; a later flush cleans them.
func (r *regions) dirtyAll() error {
	r.logging.Lock()
	defer r.logging.Unlock()
	for i := range r.words {
		r.words[i].Or(dirty | touched)
	}
	return r.log.write(func(int) bool { return true })
}
