package tier

import (
	"fmt"
	"sync"
	"unsafe"

	"lunar/cache/segment"
	"lunar/internal/cold"
	"lunar/internal/evloop"
)

// An intent is what makes an overwrite of dirty data whole although the process may
// end between any two instructions. The new data go to a small buffer in the segment
// first, which stays in the processor's cache because it is used again and again; one
// store makes them count; then they go to the block; another store ends it. Until the
// first the block is as it was, from then on the next process copies the buffer again,
// before anything is read. To write the old data aside instead would have to fetch them
// from memory.
//
// Each event thread has one, so that they share nothing; those beyond intentCount share
// the last. The area holds, for each:
//
//	intentBytes  the new data
//	word 0       where they go: slot of the segment, byte in the block, and how many
//	word 1       seal: a function of word 0 while they count, else 0
//	word 2       checksum that the sub-block is to have, and bit 32; 0: none is kept
type intent struct {
	shared *sync.Mutex // of the last; nil: it is one thread's
	buffer []byte
	record []uint64
	_      [64]byte // the next one is another thread's
}

const (
	intentArea   = "intents"
	intentCount  = 256
	intentBytes  = 4096 // all logical blocks are as large or divide it
	intentStride = intentBytes + 64
)

// spot is a range of a slot.
type spot struct{ slot, off, n uint32 }

// word packs s: there are less than 1<<28 slots of at most 1<<20 bytes.
func (s spot) word() uint64 { return uint64(s.slot)<<36 | uint64(s.off)<<16 | uint64(s.n) }

func spotOf(w uint64) spot {
	return spot{uint32(w >> 36), uint32(w>>16) & (1<<20 - 1), uint32(w & (1<<16 - 1))}
}

// seal maps words one to one, 0 to 0: a word that was damaged has another.
func seal(word uint64) uint64 {
	word *= 0x9e3779b97f4a7c15
	return word ^ word>>32
}

// lock keeps others away, if there are any.
func (in *intent) lock() {
	if in.shared != nil {
		in.shared.Lock()
	}
}

func (in *intent) unlock() {
	if in.shared != nil {
		in.shared.Unlock()
	}
}

// overwrite copies src to at, which is p's and dirty. The caller has locked in.
func (in *intent) overwrite(p *partition, at spot, src []byte) {
	word, slot := at.word(), at.slot-p.base
	sum := p.resealed(slot, at.off, src)
	p.move(in.buffer, src)
	cold.Store(&in.record[2], sum)
	cold.Store(&in.record[0], word)
	cold.Store(&in.record[1], seal(word))
	p.move(p.bytes(slot)[at.off:], src)
	p.reseal(slot, at.off, sum)
	cold.Store(&in.record[1], 0)
}

// intentsOf lays the intents over the segment's area.
func intentsOf(s *segment.Segment) []intent {
	area := s.Area(intentArea)
	records := area[intentCount*intentBytes:]
	intents := make([]intent, intentCount)
	for i := range intents {
		intents[i].buffer = area[i*intentBytes : (i+1)*intentBytes : (i+1)*intentBytes]
		intents[i].record = unsafe.Slice((*uint64)(unsafe.Pointer(&records[i*64])), 8)
	}
	return intents
}

// openIntents completes what the last process was killed in.
func (c *Cache) openIntents(slots int) error {
	if c.config.Segment == nil {
		return nil
	}
	c.intents = intentsOf(c.config.Segment)
	if err := c.remains().checkIntents(c.intents); err != nil {
		return err
	}
	c.intents[intentCount-1].shared = new(sync.Mutex)
	for i := range c.intents {
		c.intents[i].redo(c.parts, slots)
	}
	return nil
}

// checkIntents finds one that cannot have been the last process's: nothing but what
// the journal says is dirty is overwritten by one.
func (f remains) checkIntents(intents []intent) error {
	for i := range intents {
		word, sealed := intents[i].record[0], intents[i].record[1]
		if sealed == 0 || sealed == seal(word) && f.overwritable(spotOf(word)) {
			continue
		}
		at := spotOf(word)
		return fmt.Errorf("%s has a half-done write of %d bytes at byte %d of slot %d, with the seal %#x, which its journal contradicts; keep a copy of the file if its unwritten data may be needed, then remove it, and check the volumes", f.segment.Path(), at.n, at.off, at.slot, sealed)
	}
	return nil
}

// overwritable reports whether a range lies in a sub-block that was dirty when the segment
// was attached.
func (f remains) overwritable(at spot) bool {
	sub := f.geometry.SubBlock()
	return at.n > 0 && at.n <= intentBytes && int(at.off+at.n) <= f.geometry.BlockSize() &&
		int(at.off)/sub == int(at.off+at.n-1)/sub && f.dirtyAt(at.slot)>>(int(at.off)/sub)&1 != 0
}

// dirtyAt returns what the segment's journal said of a slot.
func (f remains) dirtyAt(slot uint32) uint64 {
	for _, d := range f.segment.Dirty {
		if d.Slot == slot {
			return d.Mask
		}
	}
	return 0
}

// redo completes an overwrite. A process that is killed in it leaves it to the next.
func (in *intent) redo(parts []partition, slots int) {
	if in.record[1] == 0 {
		return
	}
	at := spotOf(in.record[0])
	p := &parts[int(at.slot)/slots]
	copy(p.bytes(at.slot - p.base)[at.off:], in.buffer[:at.n])
	p.reseal(at.slot-p.base, at.off, in.record[2])
	cold.Store(&in.record[1], 0)
}

// anyIntent returns one for who is on no event thread.
func (c *Cache) anyIntent() *intent {
	if c.intents == nil {
		return nil
	}
	return &c.intents[intentCount-1]
}

// intentOf returns the one of an event thread.
func (c *Cache) intentOf(l *evloop.Loop) *intent {
	if c.intents == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.mu.intents[l]
	if in == nil {
		in = &c.intents[min(len(c.mu.intents), intentCount-1)]
		c.mu.intents[l] = in
	}
	return in
}
