package protect

import (
	"math/rand/v2"
	"testing"
)

// guardSlow is the definition: a long division, bit by bit.
func guardSlow(b []byte) (crc uint16) {
	for _, v := range b {
		crc ^= uint16(v) << 8
		for range 8 {
			if crc>>15 != 0 {
				crc = crc<<1 ^ 0x8bb7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// TestGuardVectors: the check value of the CRC catalogue and the examples of
// SBC-3 clause 4.22.3.
func TestGuardVectors(t *testing.T) {
	ones, counting := make([]byte, 32), make([]byte, 32)
	for i := range ones {
		ones[i], counting[i] = 0xff, byte(i)

	}
	for _, v := range []struct {
		data []byte
		crc  uint16
	}{
		{[]byte("123456789"), 0xd0db}, {make([]byte, 32), 0}, {ones, 0xa293}, {counting, 0x0224},
	} {
		if got := Guard(v.data); got != v.crc {
			t.Errorf("%x: found %04x, expected %04x", v.data, got, v.crc)
		}
	}
}

func TestGuardEqualsDivision(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	for range 2000 {
		from := random.IntN(900)
		part := b[from : from+random.IntN(len(b)-from)]
		if want := guardSlow(part); Guard(part) != want || guardTable(0, part) != want {
			t.Fatalf("%d bytes from %d: found %04x and %04x, expected %04x", len(part), from, Guard(part), guardTable(0, part), want)
		}
	}
}

func BenchmarkGuard(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"512", 512}, {"4096", 4096}} {
		block := make([]byte, size.n)
		for _, way := range []struct {
			name string
			crc  func([]byte) uint16
		}{{"guard", Guard}, {"table", func(b []byte) uint16 { return guardTable(0, b) }}} {
			b.Run(way.name+"/"+size.name, func(b *testing.B) {
				b.SetBytes(int64(size.n))
				for b.Loop() {
					way.crc(block)
				}
			})
		}
	}
}
