package blocks

import (
	"errors"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/cache"
	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
	"lunar/internal/evloop"
)

// Memory is the partitions of a cache and the memory of their blocks.
type Memory struct {
	Geometry  *cache.Geometry
	Parts     []Partition
	Zeroes    []byte          // a sub-block, or a page if that is larger
	Recovered cache.Recovered // what was found in the segment

	log       *slog.Logger
	slots     int // of a partition
	data      [][]byte
	indexes   [][]byte // what describes the blocks, by node
	mapped    [][]byte // of the Memory's own
	segment   *segment.Segment
	table     volumes.Table
	checksum  bool
	damaged   atomic.Uint64
	intents   []Intent // nil without a segment
	scrubbing scrubbing

	mu struct {
		sync.Mutex
		fenced  map[*evloop.Loop]bool
		intents map[*evloop.Loop]*Intent
	}
}

// Close frees what Open has mapped. A segment and arenas are the caller's.
func (m *Memory) Close() error { return m.unmap() }

// scrubbing is where the slow comparison of all sums is.
type scrubbing struct {
	part int
	slot uint32
}

// Data returns the memory of all blocks, one piece for each node.
func (m *Memory) Data() [][]byte { return m.data }

// Part returns the partition of a block.
func (m *Memory) Part(k cache.Key) *Partition { return &m.Parts[m.Geometry.Partition(k)] }

// near is how many bytes of description stay in a processor's second-level cache although
// data flow through it.
const near = 512 << 10

// Far reports whether what describes the blocks has to be fetched from memory.
func (m *Memory) Far() bool { return len(m.Parts)*metadataStride(m.slots) > near }

// BytesOf returns what a mask stands for.
func (m *Memory) BytesOf(mask uint64) int64 {
	return int64(bits.OnesCount64(mask)) * int64(m.Geometry.SubBlock())
}

// BlockShift returns the logarithm of the block size.
func (m *Memory) BlockShift() int { return bits.TrailingZeros(uint(m.Geometry.BlockSize())) }

// pageSize is the alignment of what goes to the store below, in bytes.
const pageSize = 4096

func (m *Memory) unmap() error {
	var errs []error
	for _, b := range m.mapped {
		errs = append(errs, unix.Munmap(b))
	}
	m.mapped = nil
	return errors.Join(errs...)
}

// Aligned reports whether memory begins at a page.
func Aligned(b []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%pageSize == 0 }
