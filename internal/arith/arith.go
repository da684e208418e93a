// Package arith is integer arithmetic on rates and tokens.
package arith

import "math/bits"

// MulDiv returns ⌊a·b/c⌋ for non-negative a, b and positive c with a 128-bit
// product. The quotient must fit: b <= c, or the operands are rates.
func MulDiv(a, b, c int64) int64 {
	q, _ := MulDivRem(a, b, c)
	return q
}

// MulDivRem is MulDiv with the remainder.
func MulDivRem(a, b, c int64) (int64, uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		return int64(lo / uint64(c)), lo % uint64(c)
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), r
}

// Sum is the sum of all.
func Sum(all []int64) (s int64) {
	for _, x := range all {
		s += x
	}
	return s
}
