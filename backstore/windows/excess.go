package windows

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/scheduler/plm"
)

// ExcessConfig describes an Excess.
type ExcessConfig struct {
	Name       string          // of the volume, for logs
	Slow, Fast backstore.Store // the Excess owns both
	// Identity is that of the fast device's label; zero: that which it has. A device of zeroes
	// gets one.
	Identity [16]byte
	// Writes are what the slow device takes in a window; 0: 80 % of the mean.
	Writes int64
	Window time.Duration
	// Large has writes below so many bytes go to the fast device, and larger ones to the slow
	// one; 0: the size does not matter.
	Large  int64
	Logger *slog.Logger // nil is slog.Default
}

// Excess is a slow store with a fast device for the writes that exceed what a window of the
// slow one takes. It implements backstore.Store.
type Excess struct {
	front
	config     ExcessConfig
	log        *slog.Logger
	slow, fast *disk
	memory     *scratch // a record each
	journal    journal
	claims     claims

	// gate is held shared by who uses what the log has, and alone by who takes it away.
	gate sync.RWMutex
	map_ struct { // what the log has, at which position of the fast device
		sync.RWMutex
		extents
		suspect extents // records that failed, and may be there after a crash
	}
	window struct {
		sync.Mutex
		plm.Writes
		began, at int64   // ns; at: of the last operation
		count     int64   // writes of this window
		mean      float64 // of the windows with writes
	}
	unflushed struct{ slow, fast unflushed }
	counts    excessCounts
	pressed   atomic.Int32 // changes that wait for place
	serving   atomic.Bool  // it writes back
	trouble   atomic.Pointer[string]

	resizing   sync.Mutex // held by who changes the size
	backing    sync.Mutex // held by who writes back
	room       sync.Cond  // place came free, or did not; of roomMu
	roomMu     sync.Mutex
	turns      uint64 // under roomMu: how often writing back has ended
	wake, quit chan struct{}
	background sync.WaitGroup
	closing    sync.Once
	endError   error
}

// recordMost bounds the data of a record, in bytes.
const recordMost = chunk

// OpenExcess opens the log and reads what it has. The slow device stays as it is until the
// Excess serves: who opens it may find that it is not the volume's.
func OpenExcess(c ExcessConfig) (*Excess, error) {
	x := &Excess{config: c, log: c.Logger, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	x.room.L = &x.roomMu
	if x.log == nil {
		x.log = slog.Default()
	}
	x.log = x.log.With("volume", c.Name)
	if err := x.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("fast device %s: %w", c.Fast.Info().Describe, err), x.closeStores())
	}
	return x, nil
}

// Serve has it write back what the log has, from now on. A lane does so, too.
func (x *Excess) Serve() {
	if x.serving.CompareAndSwap(false, true) {
		x.background.Go(x.run)
	}
}

// Lane implements backstore.Store.
func (x *Excess) Lane(l *evloop.Loop) (backstore.Lane, error) {
	x.Serve()
	return x.front.Lane(l)
}

func (x *Excess) open() (err error) {
	slow, fast := x.config.Slow.Info(), x.config.Fast.Info()
	switch {
	case fast.Size < ExcessLeast:
		return fmt.Errorf("found %d bytes, expected at least %d", fast.Size, ExcessLeast)
	case fast.ReadOnly || slow.ReadOnly:
		return backstore.ErrReadOnly
	}
	if x.engine, err = newEngine("excess"); err != nil {
		return err
	}
	x.below = []backstore.Store{x.config.Slow}
	if x.slow, err = newDisk(x.config.Slow, x.engine); err == nil {
		x.fast, err = newDisk(x.config.Fast, x.engine)
	}
	if err == nil {
		x.memory, err = newScratch(2*together, page+recordMost)
	}
	if err != nil {
		return err
	}
	info := slow
	info.Describe = slow.Describe + ", writes in excess on " + fast.Describe
	info.VolatileCache = slow.VolatileCache || fast.VolatileCache
	info.MaxAtomic, info.AtomicUnit, info.CryptoErase = 0, 0, false
	if !slow.DiscardZeroes {
		info.Discard, info.DiscardGran = false, 0
	}
	x.info.Store(&info)
	x.window.Large, x.window.PerWindow = x.config.Large, x.config.Writes
	x.journal.disk = x.fast
	x.front.inline = func(int64, []byte) bool { return false }
	x.front.direct, x.front.do = x.direct, x.perform
	return x.recover()
}

// Close writes back what the log has, flushes and closes both devices. If that fails, or it
// has not served, the log keeps it.
func (x *Excess) Close() error {
	x.closing.Do(func() {
		close(x.quit)
		x.background.Wait()
		if x.serving.Load() {
			x.endError = x.settle()
		}
		x.endError = errors.Join(x.endError, x.closeStores())
	})
	return x.endError
}

// settle writes back what the log has, and flushes both devices.
func (x *Excess) settle() error {
	return errors.Join(x.drain(), x.slow.flush(), x.fast.flush())
}

func (x *Excess) closeStores() (err error) {
	for _, d := range []*disk{x.slow, x.fast} {
		if d != nil {
			d.close()
		}
	}
	if x.engine != nil {
		x.engine.close()
	}
	if x.memory != nil {
		err = x.memory.close()
	}
	return errors.Join(err, x.config.Slow.Close(), x.config.Fast.Close())
}

// Empty reports whether the log has nothing that the slow device lacks.
func (x *Excess) Empty() bool {
	x.map_.RLock()
	defer x.map_.RUnlock()
	return x.map_.count == 0
}

// direct says that the slow device serves a read by itself, unless the log has a part of it.
func (x *Excess) direct(off, n int64) int {
	if x.has(off, n) {
		return -1
	}
	return 0
}

// has reports whether the log has a part of a range.
func (x *Excess) has(off, n int64) bool {
	x.map_.RLock()
	defer x.map_.RUnlock()
	return x.map_.touches(off, n)
}

// before reports whether a change of a range must go to the log, where something is, or may
// be after a crash, that would go before it.
func (x *Excess) before(off, n int64) bool {
	x.map_.RLock()
	defer x.map_.RUnlock()
	return x.map_.touches(off, n) || x.map_.suspect.touches(off, n)
}

// Identity is that of the fast device.
func (x *Excess) Identity() [16]byte { return x.journal.label.identity }

// takes decides where a write goes: reports whether the slow device takes it.
func (x *Excess) takes(n int64) bool {
	w := &x.window
	w.Lock()
	defer w.Unlock()
	now := evloop.Monotonic()
	w.at = now
	if length := int64(x.config.Window); now-w.began >= length {
		if x.config.Writes == 0 {
			const weight = 1. / 16
			w.mean += weight * (float64(w.count) - w.mean)
			w.PerWindow = max(1, plm.BasisOf(int64(w.mean+.5)))
		}
		w.count = 0
		w.began = now
		w.Begin()
	}
	w.count++
	return w.Slow(n)
}

// works reports whether the slow device is not deterministic now, so that it may be written
// back to: its window's writes are spent, nobody has written for some windows, or the log
// needs place.
func (x *Excess) works() bool {
	if x.pressed.Load() > 0 || x.journal.used() > .5 {
		return true
	}
	w := &x.window
	w.Lock()
	defer w.Unlock()
	now := evloop.Monotonic()
	length := int64(x.config.Window)
	return now-w.at > idleWindows*length || now-w.began < length && w.Spent()
}

// idleWindows is after how many windows without writes the slow device is idle.
const idleWindows = 4
