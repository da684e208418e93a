package cache

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// header is the start of a partition's memory.
type header struct {
	magic   uint64
	id      uint32 // of the partition, so that partitions are not mixed up
	version uint32
	block   uint32 // bytes
	slots   uint32
	buckets uint32
	_       [9]uint32
}

const (
	magic   = uint64(0x4c756e6172434831) // "LunarCH1"
	version = 1                          // of header and block
)

// maxSlots keeps slot numbers and twice as many buckets within 32 bits.
const maxSlots = math.MaxInt32 / 2

// MetadataSize returns the bytes that describe a partition of the given number
// of blocks.
func MetadataSize(slots int) int {
	return int(unsafe.Sizeof(header{})) + slots*int(unsafe.Sizeof(block{})) + int(bucketsFor(uint32(slots)))*8
}

// view lays the parts of a partition over mem.
func view(mem []byte, slots int) (h *header, blocks []block, buckets []uint64, err error) {
	if slots < 1 || slots > maxSlots {
		return nil, nil, nil, fmt.Errorf("cache partition of %d blocks: expected 1 to %d", slots, maxSlots)
	}
	if want := MetadataSize(slots); len(mem) < want {
		return nil, nil, nil, fmt.Errorf("%d bytes of cache metadata: expected %d for %d blocks", len(mem), want, slots)
	}
	base := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(base)%8 != 0 {
		return nil, nil, nil, fmt.Errorf("cache metadata at address %p: expected a multiple of 8", base)
	}
	h = (*header)(base)
	first := unsafe.Add(base, unsafe.Sizeof(header{}))
	blocks = unsafe.Slice((*block)(first), slots)
	after := unsafe.Add(first, uintptr(slots)*unsafe.Sizeof(block{}))
	return h, blocks, unsafe.Slice((*uint64)(after), bucketsFor(uint32(slots))), nil
}

// ownMemory is metadata that nobody else can attach.
func ownMemory(slots int) []byte {
	words := make([]uint64, (MetadataSize(max(slots, 1))+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}

func (h *header) write(c Config) {
	*h = header{magic: magic, version: version, id: c.ID, block: uint32(c.BlockSize), slots: uint32(c.Slots), buckets: bucketsFor(uint32(c.Slots))}
}

// check compares what is there with what c would have written.
func (h *header) check(c Config) error {
	var want header
	want.write(c)
	switch {
	case h.magic != magic:
		return fmt.Errorf("cache metadata begin with %#x: expected %#x", h.magic, magic)
	case *h != want:
		return fmt.Errorf("cache metadata of partition %d, version %d, with %d blocks of %d bytes: expected partition %d, version %d, with %d blocks of %d bytes",
			h.id, h.version, h.slots, h.block, want.id, want.version, want.slots, want.block)
	}
	return nil
}

// recover makes a partition of the block records alone: whatever was under way
// when the last process ended has not happened, and what was valid or dirty
// still is. Unless all records make sense, none is changed.
func (p *Partition) recover() error {
	resident, err := p.survey()
	if err != nil {
		return err
	}
	for slot := range p.blocks {
		if !p.blocks[slot].survives() {
			p.release(uint32(slot))
		}
	}
	slices.SortFunc(resident, func(x, y uint32) int {
		return cmp.Compare(p.blocks[x].stamp, p.blocks[y].stamp)
	})
	for _, slot := range resident {
		p.readopt(slot)
	}
	return nil
}

// survives reports whether a record describes data.
func (b *block) survives() bool { return b.state == stateResident && b.valid|b.dirty != 0 }

// survey fills the index and returns the slots that describe data.
func (p *Partition) survey() ([]uint32, error) {
	clear(p.index.buckets)
	var resident []uint32
	for slot := range p.blocks {
		b := &p.blocks[slot]
		k := b.key()
		switch {
		case b.state > stateDetached:
			return nil, fmt.Errorf("slot %d is in state %d: expected at most %d", slot, b.state, stateDetached)
		case !b.survives():
			continue
		case int(k.LU) >= len(p.lus):
			return nil, fmt.Errorf("slot %d belongs to LU %d: expected less than %d", slot, k.LU, len(p.lus))
		case (b.valid|b.dirty)&^ones(0, p.subs) != 0:
			return nil, fmt.Errorf("slot %d has data beyond its %d sub-blocks", slot, p.subs)
		case p.index.find(p.blocks, k, k.hash()) != NoSlot:
			return nil, fmt.Errorf("block %d of LU %d is cached twice", k.Block, k.LU)
		}
		p.index.insert(k.hash(), uint32(slot))
		resident = append(resident, uint32(slot))
	}
	return resident, nil
}

func (p *Partition) readopt(slot uint32) {
	b := &p.blocks[slot]
	k, dirty := b.key(), b.dirty
	b.valid |= dirty
	b.dirty, b.busy, b.pinned, b.flushing, b.wanted, b.pins = 0, 0, 0, 0, 0, 0
	p.lus[k.LU].adopt(p, slot, k)
	p.clock = max(p.clock, b.stamp)
	p.setDirty(slot, dirty)
}
