package scsi

// What one command may ask for, in bytes. A command holds no more than
// MaxSegments segments of memory whatever its length; these bounds keep a
// single command from occupying the medium for long.
const (
	// maxInline is what a command may do in one turn of its event thread when
	// the medium takes everything at once: others wait for the thread.
	maxInline = 1 << 20
	// leastInline is what an operation counts at least in it: that of one block is
	// work, too.
	leastInline = 32 << 10
	// partWithin and partReleased are how much is moved, and zeroed or released, in one
	// part where nothing is sent or received; of memory as much as a huge page.
	partWithin   = 64 << 10
	partReleased = 2 << 20
	// pieceSize bounds one operation that releases or zeroes, so that others
	// that need the same stripes get their turn.
	pieceSize = 32 << 20
	// maxZero bounds what UNMAP and WRITE SAME may release or fill: 1 Mi blocks
	// of 512 bytes, the most that libiscsi's conformance suite takes for sane.
	maxZero = 512 << 20
	// maxCompare lets a COMPARE AND WRITE hold both its Data-Out buffers and
	// what it read in a single segment.
	maxCompare = 64 << 10

	// maxTransferBlocks covers every READ(10) and WRITE(10), so that
	// initiators that never read the limits are served as well.
	maxTransferBlocks   = 1 << 16
	maxUnmapDescriptors = 256
	maxCompareBlocks    = 64
)

// BlockLimits is what the block limits VPD page (SBC-3 clause 6.5.3) says and
// what the commands enforce. All lengths are in logical blocks; zero means
// what the page's field says of zero.
type BlockLimits struct {
	MaxTransfer         uint32 // MAXIMUM TRANSFER LENGTH
	OptimalTransfer     uint32 // OPTIMAL TRANSFER LENGTH
	OptimalGranularity  uint16 // OPTIMAL TRANSFER LENGTH GRANULARITY
	MaxPrefetch         uint32 // MAXIMUM PREFETCH LENGTH
	MaxCompareAndWrite  uint8  // MAXIMUM COMPARE AND WRITE LENGTH
	MaxUnmap            uint32 // MAXIMUM UNMAP LBA COUNT, 0 without UNMAP
	MaxUnmapDescriptors uint32 // MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT, 0 without UNMAP
	UnmapGranularity    uint32 // OPTIMAL UNMAP GRANULARITY, 0 if unknown
	MaxWriteSame        uint64 // MAXIMUM WRITE SAME LENGTH
	WriteSameNonZero    bool   // WSNZ: a NUMBER OF LOGICAL BLOCKS of zero, all up to the end, is refused
	MaxAtomic           uint32 // MAXIMUM ATOMIC TRANSFER LENGTH, 0 without WRITE ATOMIC
	AtomicUnit          uint32 // ATOMIC ALIGNMENT and ATOMIC TRANSFER LENGTH GRANULARITY
}

// Limits returns the logical unit's limits; do not change them.
func (lu *LogicalUnit) Limits() *BlockLimits { return &lu.traits.Load().limits }

// blockLimits are those for logical blocks of size bytes.
func blockLimits(size uint32, t *traits) BlockLimits {
	l := BlockLimits{
		MaxTransfer:        maxTransferBlocks,
		OptimalTransfer:    MaxSegments * SegmentSize / size,
		OptimalGranularity: uint16(max(1, uint32(t.physical)/size)),
		MaxPrefetch:        maxTransferBlocks,
		MaxCompareAndWrite: uint8(min(maxCompareBlocks, maxCompare/size)),
		MaxWriteSame:       uint64(maxZero / size),
		WriteSameNonZero:   t.info.Size > maxZero, // it could ask for more than may be asked for
	}
	if t.info.MaxAtomic > 0 {
		l.MaxAtomic = min(SegmentSize, uint32(t.info.MaxAtomic)) / size
		l.AtomicUnit = max(1, uint32(t.info.AtomicUnit)/size)
	}
	if t.info.Discard {
		l.MaxUnmap = maxZero / size
		l.MaxUnmapDescriptors = maxUnmapDescriptors
		l.UnmapGranularity = max(1, uint32(t.info.DiscardGran)/size)
	}
	return l
}
