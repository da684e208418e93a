package blocks

import (
	"sync"
	"unsafe"

	"lunar/cache/segment"
	"lunar/internal/memcopy"
)

// An Intent is what makes an overwrite of dirty data whole although the process may
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
type Intent struct {
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
func (in *Intent) lock() {
	if in.shared != nil {
		in.shared.Lock()
	}
}

func (in *Intent) unlock() {
	if in.shared != nil {
		in.shared.Unlock()
	}
}

// overwrite copies src to at, which is p's and dirty. The caller has locked in.
func (in *Intent) overwrite(p *Partition, at spot, src []byte) {
	word, slot := at.word(), at.slot-p.base
	sum := p.resealed(slot, at.off, src)
	p.Move(in.buffer, src)
	memcopy.StoreOrdered(&in.record[2], sum)
	memcopy.StoreOrdered(&in.record[0], word)
	memcopy.StoreOrdered(&in.record[1], seal(word))
	p.Move(p.Bytes(slot)[at.off:], src)
	p.reseal(slot, at.off, sum)
	memcopy.StoreOrdered(&in.record[1], 0)
}

// intentsOf lays the intents over the segment's area.
func intentsOf(s *segment.Segment) []Intent {
	area := s.Area(intentArea)
	records := area[intentCount*intentBytes:]
	intents := make([]Intent, intentCount)
	for i := range intents {
		intents[i].buffer = area[i*intentBytes : (i+1)*intentBytes : (i+1)*intentBytes]
		intents[i].record = unsafe.Slice((*uint64)(unsafe.Pointer(&records[i*64])), 8)
	}
	return intents
}

// redo completes an overwrite. A process that is killed in it leaves it to the next.
func (in *Intent) redo(parts []Partition, slots int) {
	if in.record[1] == 0 {
		return
	}
	at := spotOf(in.record[0])
	p := &parts[int(at.slot)/slots]
	copy(p.Bytes(at.slot - p.base)[at.off:], in.buffer[:at.n])
	p.reseal(at.slot-p.base, at.off, in.record[2])
	memcopy.StoreOrdered(&in.record[1], 0)
}
