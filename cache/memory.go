package cache

import (
	"fmt"
	"math"
	"sync/atomic"
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
	*h = header{version: version, id: c.ID, block: uint32(c.BlockSize), slots: uint32(c.Slots), buckets: bucketsFor(uint32(c.Slots))}
	atomic.StoreUint64(&h.magic, magic)
}

// matches reports whether c has written the header, whose first word came last.
func (h *header) matches(c Config) bool {
	var want header
	want.write(c)
	return *h == want
}

// Format names the layout of a partition's metadata, for whoever keeps them in
// memory that another version of the program may attach.
func Format() string {
	return fmt.Sprintf("v%d/%d", version, unsafe.Sizeof(block{}))
}
