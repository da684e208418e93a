package tier

import (
	"log/slog"
	"time"

	"lunar/backstore"
	"lunar/cache/internal/blocks"
	"lunar/internal/evloop"
)

// unready is how long the flusher waits when all that is dirty is in others'
// hands.
const unready = time.Millisecond

// maxHopeless is how long it waits at most when all that is dirty is damaged. It begins
// with unready.
const maxHopeless = time.Second

// maxBarren is after how many batches in succession of which nothing could be written
// a sweep gives up: the store is gone rather than bad in places.
const maxBarren = 4

// flusher writes a volume's dirty data in the background, on the thread of
// flushers.
type flusher struct {
	volume *shared
	room   *room
	log    *slog.Logger
	loop   *evloop.Loop
	lane   *lane
	kicks  kicks

	all     bool   // everything is to be written
	running bool   // a sweep, or the flush at the end
	from    uint64 // block where a sweep goes on that is not to write all
	age     evloop.Timer
	retry   evloop.Timer
	pause   time.Duration
	idle    time.Duration // of the last look at nothing but damaged data
	own     int64         // dirty bytes of the volume, when they were last counted
	total   int64         // and of all volumes
	closing chan error    // of close; nil: not closing
	leaving chan struct{} // of abandon; nil: not leaving
	last    backstore.Op
}

// newFlusher starts the flusher of v on an event thread.
func newFlusher(v *shared, loop *evloop.Loop, log *slog.Logger) (*flusher, error) {
	l, err := v.lane(loop)
	if err != nil {
		return nil, err
	}
	f := &flusher{volume: v, room: &v.room, log: log, loop: loop, lane: l}
	f.kicks.loop, f.kicks.look = loop, f
	f.age.Fire, f.retry.Fire = f.aged, f.turn
	f.last.Done = func(*backstore.Op) { f.flushedBelow() }
	loop.Post(evloop.Func(func() { loop.Arm(&f.age, v.age()) }))
	return f, nil
}

// Run implements evloop.Task: others have kicked.
func (f *flusher) Run() {
	f.kicks.kicked.Store(false)
	f.room.common.pressed.Store(false)
	if f.kicks.aged.Swap(false) && f.age.Armed() { // else it has stopped
		f.loop.Arm(&f.age, f.volume.age())
	}
	f.turn()
}

// aged makes everything be written from time to time.
func (f *flusher) aged() {
	f.loop.Arm(&f.age, f.volume.age())
	f.kicks.all.Store(true)
	f.turn()
}

// turn starts a sweep if one is needed.
func (f *flusher) turn() {
	if f.running {
		return
	}
	if f.leaving != nil {
		f.left()
		return
	}
	f.account()
	f.all = f.kicks.all.Swap(false) || f.all
	switch {
	case f.closing != nil:
		f.start(true)
	case !f.retry.Armed() && (f.all || f.needed()):
		f.start(false)
	}
}

// start begins a sweep. One that only makes room goes on where the last one has had
// enough, where data have been dirty for longest: in between, what is written again is
// written together with its neighbours.
func (f *flusher) start(patient bool) {
	f.running = true
	if patient || f.all {
		f.from = 0
	}
	f.lane.sweeps.over(f.from, noBlock, patient, f).run()
}

// account corrects the estimates and lets writes go on that waited.
func (f *flusher) account() {
	f.own, f.total = f.room.correct()
	f.room.common.admit()
}

// needed reports whether there are many dirty bytes, some of them the volume's, or
// writes that wait for those that the volume has or is about to have. A sweep goes on
// for longer than what it takes to begin one.
func (f *flusher) needed() bool {
	r, c := f.room, f.room.common
	if c.waiting.Load() > 0 && r.own.estimate.Load() > 0 {
		return true
	}
	own, all := r.own.high.Load(), c.dirty.high.Load()
	if f.running {
		own, all = r.own.low.Load(), c.dirty.low.Load()
	}
	return f.own > own || f.own > 0 && f.total > all
}

// progressed implements sweeper.
func (f *flusher) progressed(s *sweep) bool {
	if s.err != nil {
		f.report(s.errOff, s.err)
	}
	f.account()
	return f.leaving == nil && s.barren < maxBarren && (f.closing != nil || f.all || f.needed())
}

// swept implements sweeper.
func (f *flusher) swept(s *sweep) {
	f.running = false
	from := f.from
	if f.from = s.position(); f.from == noBlock {
		f.from = 0
	}
	f.lane.sweeps.put(s)
	switch {
	case f.leaving != nil || f.closing != nil && !s.patient:
		f.turn()
	case f.closing != nil && s.err == nil && f.volume.damagedIn(0, noBlock) > 0:
		f.closed(blocks.ErrDamaged)
	case f.closing != nil && s.err == nil:
		f.flushBelow()
	case s.err != nil:
		f.failed(s.errOff, s.err)
	default:
		f.succeeded(s, from)
	}
}

// failed keeps the data dirty and tries again later.
func (f *flusher) failed(off int64, err error) {
	f.report(off, err)
	f.account() // those that wait need not any more
	if f.closing != nil {
		f.closed(err)
	}
	f.pause = min(max(2*f.pause, f.volume.config.Retry), maxRetry)
	f.kicks.all.Store(true)
	f.loop.Arm(&f.retry, f.pause)
}

// report tells of the first error, and has writes go through.
func (f *flusher) report(off int64, err error) {
	if f.room.failing.Swap(true) {
		return
	}
	f.volume.failingSince.Store(time.Now().UnixNano())
	f.log.Error("dirty data could not be written: they stay in the cache, writes go through", "store", f.volume.store.Info().Describe, "byte", off, "err", err)
	if f.volume.config.OnFlushError != nil {
		f.volume.config.OnFlushError(off, err)
	}
}

// succeeded follows a sweep from a block on that met no error.
func (f *flusher) succeeded(s *sweep, from uint64) {
	f.account() // kicks that came during the sweep did nothing
	hopeless := f.own <= f.volume.damagedIn(0, noBlock)
	if s.written > 0 || hopeless {
		f.all, f.pause = false, 0
		if f.room.failing.Swap(false) {
			f.volume.failingSince.Store(0)
			f.log.Info("dirty data are being written again", "store", f.volume.store.Info().Describe)
		}
	}
	switch {
	case !f.all && !f.needed() && !f.kicks.all.Load():
	case s.written == 0 && from == 0:
		f.loop.Arm(&f.retry, f.look(hopeless))
	default:
		f.turn()
	}
}

// look returns how long to wait before the flusher looks again.
func (f *flusher) look(hopeless bool) time.Duration {
	f.idle = min(2*f.idle, maxHopeless)
	if !hopeless || f.idle == 0 {
		f.idle = unready
	}
	return f.idle
}

// close writes everything and lets go of the lane.
func (f *flusher) close() error {
	result := make(chan error, 1)
	f.loop.Post(evloop.Func(func() {
		f.closing = result
		f.turn()
	}))
	return <-result
}

// abandon lets go of the lane and writes nothing more.
func (f *flusher) abandon() {
	left := make(chan struct{})
	f.loop.Post(evloop.Func(func() {
		f.leaving = left
		f.turn()
	}))
	<-left
}

func (f *flusher) left() {
	f.stop()
	close(f.leaving)
}

// stop lets go of the lane.
func (f *flusher) stop() {
	f.loop.Disarm(&f.age)
	f.loop.Disarm(&f.retry)
	f.running = true // for good
	f.lane.Close()
}

// flushBelow makes what was written stable, unless the store is read-only.
func (f *flusher) flushBelow() {
	f.running = true
	f.last.Kind = backstore.Flush
	if f.lane.lower.begin(&f.last) {
		f.flushedBelow()
	}
}

func (f *flusher) flushedBelow() {
	if f.last.Err != nil && f.volume.config.OnFlushError != nil { // if the volume stays, nobody else hears of it
		f.volume.config.OnFlushError(-1, f.last.Err)
	}
	f.closed(f.last.Err)
}

// closed ends close. After an error the flusher goes on.
func (f *flusher) closed(err error) {
	f.running = false
	result := f.closing
	f.closing = nil
	if err == nil {
		f.stop()
	}
	result <- err
}
