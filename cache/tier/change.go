package tier

import (
	"errors"
	"fmt"
)

// Changeable is what Wrap returns.
type Changeable interface {
	// Change puts changes into force, or none of them. With another policy than
	// Back what is dirty is written from now on: when the volume has Settled, Dirty
	// of the store tells when that is done. It must not be called on an event
	// thread, and not together with another Change of the same cache, or with Close.
	Change(Changes) error
	// Settled reports whether writes have ended that began before a Change.
	Settled() bool
	// MayWriteBack reports whether the volume was opened with Back.
	MayWriteBack() bool
	// Keep has Close leave what is clean in the cache for the volume of the same ID
	// that is wrapped next, which gets it if nobody has written to the store since.
	Keep()
	// Left reports whether the volume has left the cache. After an error of Close
	// one that has not goes on as if it had not been called.
	Left() bool
}

// Keep implements Changeable.
func (v *volume) Keep() { v.keeps = true }

// Left implements Changeable.
func (v *volume) Left() bool { return v.left.Load() }

// MayWriteBack implements Changeable.
func (v *volume) MayWriteBack() bool { return v.config.Policy == Back }

// SetDirtyLimit changes Config.DirtyLimit (not 0). Volumes follow with their next
// Change.
func (c *Cache) SetDirtyLimit(bytes int64) { c.room.dirty.set(bytes) }

// Change implements Changeable.
func (v *volume) Change(c Changes) error {
	if c.Policy != v.config.Policy && !v.MayWriteBack() {
		return fmt.Errorf("cache of %s: found write policy %v, expected %v: a volume begins to write back when it is opened", v.store.Info().Describe, c.Policy, v.config.Policy)
	}
	old := v.changes.Load()
	if err := v.reshare(c.Min, c.Max); err != nil {
		return errors.Join(fmt.Errorf("cache of %s: %w", v.store.Info().Describe, err), v.reshare(old.Min, old.Max))
	}
	v.adopt(c)
	if v.flusher == nil {
		return nil
	}
	v.flusher.kicks.kickAged() // the limit may be lower, too, or throttled writes may go on
	if v.room.aside.Load() && v.settling.Add(1) == 1 {
		v.tuning.Go(v.settle)
	}
	return nil
}

// settle waits for writes that began before the last Change, for which a store may
// take its time, and then has everything written.
func (v *volume) settle() {
	for n := int32(0); !v.settling.CompareAndSwap(n, 0); {
		n = v.settling.Load()
		v.sizing.counters.Wait()
		v.flusher.kicks.kickAll()
	}
}

// Settled implements Changeable.
func (v *volume) Settled() bool { return v.settling.Load() == 0 }

// adopt puts everything but the shares of the partitions into force.
func (v *volume) adopt(c Changes) {
	c.Age = positive(c.Age, defaultAge)
	v.changes.Store(&c)
	limit := v.room.common.dirty.limit.Load()
	if c.DirtyLimit > 0 {
		limit = min(limit, c.DirtyLimit)
	}
	v.room.own.set(limit)
	v.room.aside.Store(v.config.Policy == Back && c.Policy != Back)
}

func (v *volume) reshare(least, most int64) error {
	for i := range v.blocks.Parts {
		if err := v.blocks.Parts[i].SetShare(v.config.LU, v.blocksOf(least), v.blocksOf(most)); err != nil {
			return err
		}
	}
	return nil
}
