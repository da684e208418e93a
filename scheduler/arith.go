package scheduler

import "math/bits"

// mulDiv returns ⌊a·b/c⌋ for non-negative a, b and positive c with a 128-bit
// product. The quotient must fit; here b <= c or the operands are rates.
func mulDiv(a, b, c int64) int64 {
	q, _ := mulDivRem(a, b, c)
	return q
}

// mulDivRem is mulDiv with the remainder.
func mulDivRem(a, b, c int64) (int64, uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 {
		return int64(lo / uint64(c)), lo % uint64(c)
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), r
}
