package arith

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestMulDiv compares with arithmetic of any size.
func TestMulDiv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.Int64Range(1, math.MaxInt64).Draw(t, "c")
		a, b := rapid.Int64Range(0, math.MaxInt64).Draw(t, "a"), rapid.Int64Range(0, c).Draw(t, "b")
		q, r := MulDivRem(a, b, c)
		product := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		wantQ, wantR := new(big.Int).QuoRem(product, big.NewInt(c), new(big.Int))
		if q != wantQ.Int64() || r != wantR.Uint64() || MulDiv(a, b, c) != q {
			t.Fatalf("%d * %d / %d: found %d rest %d, expected %v rest %v", a, b, c, q, r, wantQ, wantR)
		}
	})
}
