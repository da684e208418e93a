package protect

import "golang.org/x/sys/cpu"

// foldStride is how many bytes the carry-less multiplication takes at once.
const foldStride = 64

// powers are x^n modulo the polynomial for the distances that fold needs: by 512
// bits for its loop, by 128 bits to join its four parts. Pairs: for the high and
// the low half of 128 bits.
var powers = [4]uint64{power(512 + 64), power(512), power(128 + 64), power(128)}

// power returns x^n modulo the polynomial.
func power(n int) uint64 {
	p := uint32(1)
	for range n {
		p <<= 1
		if p>>16 != 0 {
			p ^= 1<<16 | polynomial
		}
	}
	return uint64(p)
}

// fold writes 16 bytes to remainder that have the same CRC as the first n bytes
// of b, n a positive multiple of foldStride. It needs PCLMULQDQ and SSSE3.
//
//go:noescape
func fold(b *byte, n int, powers *[4]uint64, remainder *[16]byte)

func guard(b []byte) uint16 {
	n := len(b) &^ (foldStride - 1)
	if n == 0 || !cpu.X86.HasPCLMULQDQ || !cpu.X86.HasSSSE3 {
		return guardTable(0, b)
	}
	var remainder [16]byte
	fold(&b[0], n, &powers, &remainder)
	return guardTable(guardTable(0, remainder[:]), b[n:])
}
