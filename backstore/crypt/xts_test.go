package crypt

import (
	"bytes"
	"crypto/aes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	oracle "golang.org/x/crypto/xts"
)

func fromHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKnownAnswers: the XTS-AES-256 vectors 10 to 14 of IEEE 1619 annex B, of which
// the number of the data unit alone differs.
func TestKnownAnswers(t *testing.T) {
	x := newXTS((*[MasterSize]byte)(fromHex(t, "2718281828459045235360287471352662497757247093699959574966967627"+
		"3141592653589793238462643383279502884197169399375105820974944592")))
	clear512 := make([]byte, 512)
	for i := range clear512 {
		clear512[i] = byte(i)
	}
	for _, v := range []struct {
		number       uint64
		begins, ends string
	}{
		{0xff, "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b", "38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151"},
		{0xffff, "77a31251618a15e6b92d1d66dffe7b50b50bad552305ba0217a610688eff7e11", ""},
		{0xffffff, "e387aaa58ba483afa7e8eb469778317ecf4cf573aa9d4eac23f2cdf914e4e200", ""},
		{0xffffffff, "bf53d2dade78e822a4d949a9bc6766b01b06a8ef70d26748c6a7fc36d80ae4c5", ""},
		{0xffffffffff, "64497e5a831e4a932c09be3e5393376daa599548b816031d224bbf50a818ed23", ""},
	} {
		b := make([]byte, 512)
		x.seal(b, clear512, v.number, 512, new(tweaks))
		if begins, ends := fromHex(t, v.begins), fromHex(t, v.ends); !bytes.HasPrefix(b, begins) || !bytes.HasSuffix(b, ends) {
			t.Errorf("data unit %x: found %x", v.number, b)
		}
		if x.open(b, v.number, 512, new(tweaks)); !bytes.Equal(b, clear512) {
			t.Errorf("data unit %x: deciphered to %x", v.number, b)
		}
	}
}

// TestEqualsOracle: many units at once, in place and not, against another XTS.
func TestEqualsOracle(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	fill := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	for _, unit := range []int{512, 4096} {
		master := (*[MasterSize]byte)(fill(make([]byte, MasterSize)))
		x := newXTS(master)
		other, err := oracle.NewCipher(aes.NewCipher, master[:])
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			n, first := 1+random.IntN(9), random.Uint64()>>random.IntN(64)
			src := fill(make([]byte, n*unit))
			want := make([]byte, len(src))
			for i := range n {
				other.Encrypt(want[i*unit:][:unit], src[i*unit:][:unit], first+uint64(i))
			}
			got := make([]byte, len(src)+1)[1:] // not aligned
			x.seal(got, src, first, unit, new(tweaks))
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %d units of %d from %d on are enciphered otherwise", seed, n, unit, first)
			}
			if x.open(got, first, unit, new(tweaks)); !bytes.Equal(got, src) {
				t.Fatalf("seed %d: %d units of %d from %d on are deciphered otherwise", seed, n, unit, first)
			}
			if x.seal(src, src, first, unit, new(tweaks)); !bytes.Equal(src, want) {
				t.Fatalf("seed %d: in place", seed)
			}
		}
	}
}

// TestZeroUnits: what is all zeroes below is so above, unit by unit.
func TestZeroUnits(t *testing.T) {
	x := newXTS(new([MasterSize]byte))
	text := bytes.Repeat([]byte{7}, 3*512)
	x.seal(text, text, 5, 512, new(tweaks))
	clear(text[512:1024])
	x.open(text, 5, 512, new(tweaks))
	want := bytes.Repeat([]byte{7}, 3*512)
	clear(want[512:1024])
	if !bytes.Equal(text, want) {
		t.Errorf("found %x", text)
	}
}

func BenchmarkXTS(b *testing.B) {
	x := newXTS(new([MasterSize]byte))
	src, dst := make([]byte, 256<<10), make([]byte, 256<<10)
	for i := range src {
		src[i] = byte(i)
	}
	t := new(tweaks)
	for _, unit := range []int{512, 4096} {
		b.Run(fmt.Sprintf("seal/%d", unit), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				x.seal(dst, src, 0, unit, t)
			}
		})
		b.Run(fmt.Sprintf("open/%d", unit), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				x.open(dst, 0, unit, t)
			}
		})
	}
}
