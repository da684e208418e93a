package bulk

import (
	"bytes"
	"crypto/sha256"

	"lunar/internal/pipeline/rftp"
)

// Sum is the SHA-256 of a block, or of the sums of all blocks: the checksum of a volume.
type Sum [rftp.SumSize]byte

// BlockSize is how a volume is divided, in bytes, for its checksum and for moves.
const BlockSize = 1 << 20

// Blocks returns the number of blocks of a volume of size bytes.
func Blocks(size int64) int64 { return (size + BlockSize - 1) / BlockSize }

// lengthOf is the length of a block: the last one may be shorter.
func lengthOf(size, block int64) int { return int(min(BlockSize, size-block*BlockSize)) }

// sumOf is the sum of a block.
func sumOf(b []byte) Sum { return sha256.Sum256(b) }

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
	h := sha256.New()
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
