package blocks

import (
	"fmt"

	"lunar/cache"
	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
)

// Remains are what an earlier process has left in a segment.
type Remains struct {
	Segment  *segment.Segment
	Table    volumes.Table
	Geometry *cache.Geometry
}

// journalled returns what the segment's journal says is dirty, by partition.
func (f *Remains) journalled(slots int) (map[uint32][]cache.DirtySlot, error) {
	if f.Segment == nil {
		return nil, nil
	}
	if err := f.Table.Check(); err != nil {
		return nil, fmt.Errorf("%s has a damaged table of volumes: %w; keep a copy of the file if its unwritten data may be needed, then remove it, and check the volumes", f.Segment.Path(), err)
	}
	out := map[uint32][]cache.DirtySlot{}
	for _, d := range f.Segment.Dirty {
		id := d.Slot / uint32(slots)
		r, known := f.Table.Find(d.Volume)
		key := cache.Key{LU: r.Number, Block: d.Block}
		if !known || f.Geometry.Partition(key) != id {
			return nil, fmt.Errorf("%s has unwritten data of block %d of a volume with identity %#x in slot %d, which its table of volumes contradicts; keep a copy of the file if the data may be needed, then remove it, and check the volumes", f.Segment.Path(), d.Block, d.Volume, d.Slot)
		}
		out[id] = append(out[id], cache.DirtySlot{Slot: d.Slot % uint32(slots), Key: key, Mask: d.Mask})
	}
	return out, nil
}

// Check returns why Open would fail with what is in the segment.
func (f *Remains) Check(config *Config) error {
	slots, err := config.Slots()
	if err != nil {
		return err
	}
	dirty, err := f.journalled(slots)
	if err != nil {
		return err
	}
	for id, of := range dirty {
		if err := cache.CheckDirty(cache.Config{ID: id, Slots: slots, BlockSize: config.Layout.BlockSize, LUs: f.Table.Rows()}, of); err != nil {
			return err
		}
	}
	return f.checkIntents(intentsOf(f.Segment))
}

// checkIntents finds one that cannot have been the last process's: nothing but what
// the journal says is dirty is overwritten by one.
func (f *Remains) checkIntents(intents []Intent) error {
	for i := range intents {
		word, sealed := intents[i].record[0], intents[i].record[1]
		if sealed == 0 || sealed == seal(word) && f.overwritable(spotOf(word)) {
			continue
		}
		at := spotOf(word)
		return fmt.Errorf("%s has a half-done write of %d bytes at byte %d of slot %d, with the seal %#x, which its journal contradicts; keep a copy of the file if its unwritten data may be needed, then remove it, and check the volumes", f.Segment.Path(), at.n, at.off, at.slot, sealed)
	}
	return nil
}

// overwritable reports whether a range lies in a sub-block that was dirty when the segment
// was attached.
func (f *Remains) overwritable(at spot) bool {
	sub := f.Geometry.SubBlock()
	return at.n > 0 && at.n <= intentBytes && int(at.off+at.n) <= f.Geometry.BlockSize() &&
		int(at.off)/sub == int(at.off+at.n-1)/sub && f.dirtyAt(at.slot)>>(int(at.off)/sub)&1 != 0
}

// dirtyAt returns what the segment's journal said of a slot.
func (f *Remains) dirtyAt(slot uint32) uint64 {
	for _, d := range f.Segment.Dirty {
		if d.Slot == slot {
			return d.Mask
		}
	}
	return 0
}
