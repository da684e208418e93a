package scsi

import (
	"errors"
	"sync/atomic"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// stability tells which writes may still be volatile. It numbers the flushes of the
// whole unit by their start. A write belongs to the next flush that begins, and a
// flush that succeeds covers all writes that belong to it or to earlier ones.
type stability struct {
	begun  atomic.Uint64 // flushes
	stable atomic.Uint64 // number of the last flush that succeeded, by its start
}

// next returns the number of the flush that will cover a write made now.
func (s *stability) next() uint64 { return s.begun.Load() + 1 }

// flushing returns the number of a flush that begins.
func (s *stability) flushing() uint64 { return s.begun.Add(1) }

// flushed notes that flush number n has succeeded.
func (s *stability) flushed(n uint64) {
	for {
		old := s.stable.Load()
		if old >= n || s.stable.CompareAndSwap(old, n) {
			return
		}
	}
}

// covers reports whether everything that a flush covers is stable.
func (s *stability) covers(flush uint64) bool { return flush <= s.stable.Load() }

// deferredError is an exception condition of writes that were acknowledged
// before (SPC-4 clause 4.5.7).
type deferredError struct {
	sense sense.Data
	flush uint64 // once it succeeds, the data are stable after all
	lost  bool   // no flush makes up for it
}

// maxDeparted bounds the initiator ports that are remembered without a nexus.
const maxDeparted = 64

// departed is what an initiator port's nexus leaves behind.
type departed struct {
	wrote    uint64
	deferred *deferredError
}

// DeferredError tells the initiators that data of theirs, which the volatile
// cache had acknowledged, could not be written: from byte off on, or anywhere
// if off is negative. Each nexus that has written since everything was last
// stable hears of it once, at its next command that may report it: not at
// INQUIRY and REPORT LUNS, and from REQUEST SENSE as parameter data. That
// command is not executed. Unit attention conditions come first; of several
// deferred errors the last is reported (SPC-4 clause 4.5.7); and none that a
// later flush has made up for. Nexuses that end leave theirs to the next of the
// same initiator port. Data that were dirty before the unit was made are
// everybody's. Any goroutine may call it.
func (lu *LogicalUnit) DeferredError(off int64, err error) { lu.deferError(off, err, nil) }

// deferError is DeferredError for all but a nexus that hears of it otherwise.
func (lu *LogicalUnit) deferError(off int64, err error, hears *Nexus) {
	d := &deferredError{lu.deferredSense(off, err), lu.stability.next(), errors.Is(err, backstore.ErrLost)}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.lastDeferred.Store(d) // before it is asked who has written: see Nexus.wroteVolatile
	all := lu.inherits()
	for n := range lu.mu.nexuses {
		if n != hears && (all || !lu.stability.covers(n.wrote.Load())) {
			n.deferred.Store(d)
		}
	}
	for port, left := range lu.mu.departed {
		if !lu.stability.covers(left.wrote) {
			lu.mu.departed[port] = departed{left.wrote, d}
		}
	}
}

// isMadeUp reports whether what could not be written is stable after all.
func (lu *LogicalUnit) isMadeUp(d *deferredError) bool {
	return !d.lost && lu.stability.covers(d.flush)
}

// inherits reports whether the store may still have data that were dirty before
// the logical unit was made.
func (lu *LogicalUnit) inherits() bool { return lu.inherited && lu.stability.stable.Load() == 0 }

// deferredSense tells of a write at byte off.
func (lu *LogicalUnit) deferredSense(off int64, err error) sense.Data {
	if errors.Is(err, backstore.ErrOutOfRange) || errors.Is(err, backstore.ErrUnsupported) {
		err = nil // no fault of a command
	}
	s := senseOf(err, backstore.Write, uint64(max(off, 0))>>lu.blockShift)
	s.InfoValid = s.InfoValid && off >= 0
	s.Deferred = true
	return s
}

// writesVolatile notes that the nexus begins a write through the volatile cache,
// so that it hears of all that happens to it.
func (n *Nexus) writesVolatile() {
	if now := n.LU.stability.next(); n.wrote.Load() != now {
		n.wrote.Store(now)
	}
}

// wroteVolatile notes the end of such a write: a flush that began meanwhile may
// not cover it. A deferred error that came between that flush and now did not
// find the nexus.
func (n *Nexus) wroteVolatile() {
	now, was := n.LU.stability.next(), n.wrote.Load()
	if was == now {
		return
	}
	n.wrote.Store(now)
	if d := n.LU.lastDeferred.Load(); d != nil && d.flush > was {
		n.deferred.Store(d)
	}
}

// takeDeferred removes the deferred error that is to be reported, if there is
// one.
func (n *Nexus) takeDeferred() *sense.Data {
	d := n.deferred.Swap(nil)
	if d == nil || n.LU.isMadeUp(d) {
		return nil
	}
	return &d.sense
}

// leave keeps what a nexus that ends should still be told. The caller holds mu.
func (lu *LogicalUnit) leave(n *Nexus) {
	left := departed{n.wrote.Load(), n.deferred.Swap(nil)}
	if lu.forgettable(left) {
		return
	}
	if lu.mu.departed == nil {
		lu.mu.departed = make(map[claimant]departed)
	}
	for port, other := range lu.mu.departed {
		if lu.forgettable(other) {
			delete(lu.mu.departed, port)
		}
	}
	if len(lu.mu.departed) < maxDeparted {
		lu.mu.departed[n.claimant()] = left
	}
}

func (lu *LogicalUnit) forgettable(d departed) bool {
	return lu.stability.covers(d.wrote) && (d.deferred == nil || lu.isMadeUp(d.deferred))
}

// inherit gives a nexus what earlier ones of its initiator port have left, and
// what is everybody's. The caller holds mu.
func (lu *LogicalUnit) inherit(n *Nexus) {
	for who, left := range lu.mu.departed {
		if who.initiator != n.Initiator {
			continue
		}
		n.wrote.Store(max(n.wrote.Load(), left.wrote))
		if d := n.deferred.Load(); left.deferred != nil && (d == nil || d.flush < left.deferred.flush) {
			n.deferred.Store(left.deferred)
		}
		if who == n.claimant() { // others are told as well, and take nothing away
			delete(lu.mu.departed, who)
		}
	}
	if d := lu.lastDeferred.Load(); d != nil && lu.inherits() {
		n.deferred.Store(d)
	}
}
