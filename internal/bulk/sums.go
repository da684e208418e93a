package bulk

import (
	"bytes"

	"lukechampine.com/blake3"
	"lukechampine.com/blake3/guts"

	"lunar/internal/pipeline/rftp"
)

// Sum is the BLAKE3 of a block, or of the sums of all blocks: the checksum of a volume. It
// decides that a block need not be sent, of data that an initiator may have made for that: so
// it has to be a hash for which nobody finds two blocks.
type Sum [rftp.SumSize]byte

// BlockSize is how a volume is divided, in bytes, for its checksum and for moves.
const BlockSize = 1 << 20

// Blocks returns the number of blocks of a volume of size bytes.
func Blocks(size int64) int64 { return size/BlockSize + min(size%BlockSize, 1) }

// lengthOf is the length of a block: the last one may be shorter.
func lengthOf(size, block int64) int { return int(min(BlockSize, size-block*BlockSize)) }

// sumPiece is what is compressed at a time.
const sumPiece = guts.MaxSIMD * guts.ChunkSize

// sumOf is the sum of a block. The library's own function would begin goroutines, which are
// as many, and as urgent, as they like.
func sumOf(b []byte) Sum {
	var trees [16][8]uint32 // of 1, 2, 4, ... pieces; which of them are there, n says
	n := uint64(0)
	for ; len(b) > sumPiece; n++ {
		cv := guts.ChainingValue(guts.CompressBuffer((*[sumPiece]byte)(b), sumPiece, &guts.IV, n*guts.MaxSIMD, 0))
		at := 0
		for ; n>>at&1 == 1; at++ {
			cv = guts.ChainingValue(guts.ParentNode(trees[at], cv, &guts.IV, 0))
		}
		trees[at], b = cv, b[sumPiece:]
	}
	var last [sumPiece]byte
	root := guts.CompressBuffer(&last, copy(last[:], b), &guts.IV, n*guts.MaxSIMD, 0)
	for at := range trees {
		if n>>at&1 == 1 {
			root = guts.ParentNode(trees[at], guts.ChainingValue(root), &guts.IV, 0)
		}
	}
	root.Flags |= guts.FlagRoot
	words := guts.WordsToBytes(guts.CompressNode(root))
	return Sum(words[:rftp.SumSize])
}

// unknown is the sum of no block: who has one with it has to be sent it. The zero Sum would
// count as zeroes, which the block may have to be.
var unknown = Sum{1}

// zeroes are the sums of blocks of zeroes: of a whole one, and of the last.
type zeroes struct {
	size        int64
	whole, last Sum
}

func zeroesOf(size int64) *zeroes {
	nothing := make([]byte, BlockSize)
	return &zeroes{size, sumOf(nothing), sumOf(nothing[:lengthOf(size, Blocks(size)-1)])}
}

// of is the sum of a block of zeroes in the place of a block.
func (z *zeroes) of(block int64) Sum {
	if lengthOf(z.size, block) == BlockSize {
		return z.whole
	}
	return z.last
}

// sumOf is the sum of a block's contents.
func (z *zeroes) sumOf(block int64, b []byte) Sum {
	if isZero(b) {
		return z.of(block)
	}
	return sumOf(b)
}

// normal replaces the zero Sum, which stands for a block that was never stored, by that of
// zeroes.
func (z *zeroes) normal(block int64, s Sum) Sum {
	if s == (Sum{}) {
		return z.of(block)
	}
	return s
}

// checksum is that of a volume whose blocks have these sums.
func (z *zeroes) checksum(sums []Sum) Sum {
	h := blake3.New(rftp.SumSize, nil)
	for i, s := range sums {
		s = z.normal(int64(i), s)
		h.Write(s[:])
	}
	return Sum(h.Sum(nil))
}

var nothing [4096]byte

// isZero reports whether b is zeroes.
func isZero(b []byte) bool {
	for len(b) > len(nothing) {
		if !bytes.Equal(b[:len(nothing)], nothing[:]) {
			return false
		}
		b = b[len(nothing):]
	}
	return bytes.Equal(b, nothing[:len(b)])
}
