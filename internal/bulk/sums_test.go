package bulk

import (
	"testing"

	"lukechampine.com/blake3"
)

// TestSum: the sum of a block is its BLAKE3, whatever its length.
func TestSum(t *testing.T) {
	b := make([]byte, BlockSize)
	for i := range b {
		b[i] = byte(i * i >> 7)
	}
	for _, n := range []int{0, 1, 512, 1024, 1025, sumPiece - 512, sumPiece, sumPiece + 512, 3 * sumPiece, 5*sumPiece + 1536, BlockSize - 512, BlockSize} {
		if found, expected := sumOf(b[:n]), Sum(blake3.Sum256(b[:n])); found != expected {
			t.Errorf("%d bytes: found %x, expected %x", n, found[:8], expected[:8])
		}
	}
}

func BenchmarkSum(b *testing.B) {
	data := make([]byte, BlockSize)
	b.SetBytes(BlockSize)
	for b.Loop() {
		sumOf(data)
	}
}
