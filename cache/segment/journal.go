package segment

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"sync/atomic"
)

// Positions in a record, in words; the package comment says more.
const (
	atRecordSequence = 0
	atVolume         = 1
	atBlockNumber    = 2
	atKey            = 3
	atDirty          = 4 // two words
	recordWords      = 8
)

// ErrDirtySlot is the answer to Assign for a slot that holds dirty data, which
// would be lost.
var ErrDirtySlot = errors.New("cache segment: the slot is still dirty")

// Range is the dirty part of a slot.
type Range struct {
	Volume   uint64 // as it was given to Assign
	Block    uint64
	Mask     uint64 // dirty sub-blocks, the lowest bit is the first
	Slot     uint32
	Sequence uint64 // higher is newer
}

// Journal says which ranges are dirty. Its methods neither allocate nor lock.
type Journal struct {
	w        words
	slots    uint32
	salt     uint64
	sequence atomic.Uint64 // last used
}

func (j *Journal) at(slot uint32) int { return headWords + int(slot)*recordWords }

// Assign makes the slot that of a block, and newer than all others of this
// block. Nothing of the slot may be dirty, and nobody else may use the slot
// meanwhile. The volume is the caller's number for what the data belongs to; it
// has to mean the same to a later process.
func (j *Journal) Assign(slot uint32, volume, block uint64) error {
	at := j.at(slot)
	if j.w.load(at+atDirty)|j.w.load(at+atDirty+1) != 0 {
		return ErrDirtySlot
	}
	sequence := j.sequence.Add(1)
	j.w.store(at+atRecordSequence, sequence)
	j.w.store(at+atVolume, volume)
	j.w.store(at+atBlockNumber, block)
	j.w.store(at+atKey, key(j.salt, sequence, volume, block, slot))
	return nil
}

// key is the word that ties a record together.
func key(salt, sequence, volume, block uint64, slot uint32) uint64 {
	crc := sum(sum(sum(sum(sum(0, salt), sequence), volume), block), uint64(slot))
	return uint64(slot) | uint64(crc)<<32
}

// MarkDirty marks sub-blocks of an assigned slot. When it returns, a process
// that attaches the segment finds them. Any number of threads may mark.
func (j *Journal) MarkDirty(slot uint32, mask uint64) {
	j.change(slot, 0, uint32(mask), 0)
	j.change(slot, 1, uint32(mask>>32), 0)
}

// MarkClean takes marks away. Any number of threads may do so.
func (j *Journal) MarkClean(slot uint32, mask uint64) {
	j.change(slot, 0, 0, uint32(mask))
	j.change(slot, 1, 0, uint32(mask>>32))
}

func (j *Journal) change(slot uint32, half int, set, unset uint32) {
	if set|unset == 0 {
		return
	}
	at := j.at(slot)
	seed := uint32(j.w.load(at+atKey) >> 32)
	for {
		old := j.w.load(at + atDirty + half)
		dirty := uint32(old)&^unset | set
		if dirty == uint32(old) || j.w.swap(at+atDirty+half, old, sealed(seed, half, dirty)) {
			return
		}
	}
}

// sealed joins dirty bits and their checksum, which is never 0, so that no
// single byte stands between a word with bits and one without.
func sealed(seed uint32, half int, dirty uint32) uint64 {
	if dirty == 0 {
		return 0
	}
	crc := sum(seed, uint64(dirty)|uint64(half+1)<<32)
	return uint64(dirty) | uint64(max(crc, 1))<<32
}

// Dirty returns the dirty sub-blocks of a slot.
func (j *Journal) Dirty(slot uint32) uint64 {
	at := j.at(slot)
	return uint64(uint32(j.w.load(at+atDirty))) | j.w.load(at+atDirty+1)<<32
}

// scan reads all records. damaged are slots whose record has a wrong checksum.
func (j *Journal) scan() (ranges []Range, damaged []uint32) {
	for slot := range j.slots {
		r, dirty, sound := j.record(slot)
		switch {
		case !dirty:
		case sound:
			ranges = append(ranges, r)
		default:
			damaged = append(damaged, slot)
		}
	}
	return ranges, damaged
}

// record reads a record. One of which nothing is dirty says nothing.
func (j *Journal) record(slot uint32) (r Range, dirty, sound bool) {
	at := j.at(slot)
	halves := [2]uint64{j.w.load(at + atDirty), j.w.load(at + atDirty + 1)}
	if halves[0]|halves[1] == 0 {
		return Range{}, false, true
	}
	r = Range{
		Volume: j.w.load(at + atVolume), Block: j.w.load(at + atBlockNumber),
		Mask: uint64(uint32(halves[0])) | halves[1]<<32,
		Slot: slot, Sequence: j.w.load(at + atRecordSequence),
	}
	k := j.w.load(at + atKey)
	sound = k == key(j.salt, r.Sequence, r.Volume, r.Block, slot)
	for half, word := range halves {
		sound = sound && word == sealed(uint32(k>>32), half, uint32(word))
	}
	return r, true, sound
}

// resolve sorts ranges by address and leaves each sub-block only to the newest
// slot that has it dirty. stale is what the others have of them.
func resolve(ranges []Range) (newest, stale []Range) {
	slices.SortFunc(ranges, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.Block, b.Block), cmp.Compare(b.Sequence, a.Sequence))
	})
	var taken uint64
	for i, r := range ranges {
		if i == 0 || r.Volume != ranges[i-1].Volume || r.Block != ranges[i-1].Block {
			taken = 0
		}
		old := r
		old.Mask &= taken
		r.Mask &^= taken
		taken |= r.Mask
		if old.Mask != 0 {
			stale = append(stale, old)
		}
		if r.Mask != 0 {
			newest = append(newest, r)
		}
	}
	return newest, stale
}

// subBlocks counts the dirty bits.
func subBlocks(ranges []Range) (n int64) {
	for _, r := range ranges {
		n += int64(bits.OnesCount64(r.Mask))
	}
	return n
}
