package scsi

import (
	"fmt"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// traits are what initiators are told of a logical unit besides its identity and its
// State: what its store says of itself, and settings. Replaced as a whole.
type traits struct {
	info     backstore.Info // the size is that of the start; that of now is State's
	limits   BlockLimits
	physical int  // physical block length in bytes
	warm     bool // the store knows its temperature
	explicit bool // initiators may change how target ports lead here
	groups   bool // GROUP NUMBER has a meaning
}

// findTraits asks the store.
func (lu *LogicalUnit) findTraits(s Settings, info backstore.Info) *traits {
	t := &traits{info: info, physical: s.PhysicalBlock, explicit: s.ExplicitAccess, groups: s.GroupNumbers}
	setDefault(&t.physical, info.PhysicalBlock)
	_, cold := backstore.TemperatureOf(lu.store)
	t.warm = cold == nil
	t.limits = blockLimits(uint32(lu.config.BlockSize), t)
	if lu.protect != protect.None { // an atomic write is one segment, with its tuples
		t.limits.MaxAtomic = min(t.limits.MaxAtomic, shieldedSpan>>lu.blockShift)
	}
	return t
}

// Accepts says why the logical unit cannot go on with a store, which is to take the
// place of the one that it has; nil: it can.
func (lu *LogicalUnit) Accepts(store backstore.Store) error {
	info, kind := store.Info(), protectionOf(store)
	switch had := int64(lu.State().Blocks) << lu.blockShift; {
	case info.Size < had:
		return fmt.Errorf("volume %q: %s has %d bytes: expected at least the %d that it had", lu.config.Name, info.Describe, info.Size, had)
	case kind != lu.protect:
		return fmt.Errorf("volume %q: found protection information of type %d, expected type %d", lu.config.Name, kind, lu.protect)
	}
	if err := lu.checkUnit(info); err != nil {
		return fmt.Errorf("volume %q: %w", lu.config.Name, err)
	}
	return nil
}

// tellTraits establishes unit attentions for what differs. The caller holds mu.
func (lu *LogicalUnit) tellTraits(before, now *traits) {
	was, is := before.info, now.info
	if before.physical != now.physical || was.Discard != is.Discard || was.DiscardZeroes != is.DiscardZeroes {
		lu.attention(sense.ASCCapacityChanged, nil) // READ CAPACITY(16)
	}
	same := before.limits == now.limits && before.explicit == now.explicit && before.groups == now.groups && was.VolatileCache == is.VolatileCache &&
		was.Rotational == is.Rotational && was.Thin == is.Thin && was.DiscardZeroes == is.DiscardZeroes
	if !same {
		lu.attention(sense.ASCInquiryDataChanged, nil) // TPGS, and VPD pages 86h, B0h, B1h and B2h
	}
}

// protectionOf is the type of the protection information that a store has, or the
// store in a Slot.
func protectionOf(store backstore.Store) protect.Type {
	if slot, ok := store.(*backstore.Slot); ok {
		store = slot.Content()
	}
	if s, ok := store.(protected); ok {
		return s.Type()
	}
	return protect.None
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (lu *LogicalUnit) checkUnit(info backstore.Info) error {
	if size, unit := lu.config.BlockSize, info.BlockSize; unit > 1 && size%unit != 0 {
		return fmt.Errorf("block size %d: expected a multiple of %d, the smallest unit that %s can write", size, unit, info.Describe)
	}
	return nil
}
