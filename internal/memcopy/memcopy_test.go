package memcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestCopy: all lengths around the borders, any alignment, and nothing beside the
// destination is changed.
func TestCopy(t *testing.T) {
	from, random := make([]byte, 300<<10), rand.New(rand.NewPCG(1, 2))
	for i := range from {
		from[i] = byte(random.Uint32())
	}
	for _, n := range []int{0, 1, 63, 64, 2047, 2048, 2049, 4095, 4096, 4097, 64 << 10, 256 << 10} {
		for _, off := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {64, 48}, {48, 64}, {512, 96}, {7, 4095}} {
			to := bytes.Repeat([]byte{0xa5}, 300<<10)
			dst, src := to[off[0]:off[0]+n], from[off[1]:off[1]+n]
			Copy(dst, src)
			if !bytes.Equal(dst, src) {
				t.Errorf("%d bytes from %d to %d: the copy is another one", n, off[1], off[0])
			}
			for i, b := range to {
				if b != 0xa5 && (i < off[0] || i >= off[0]+n) {
					t.Fatalf("%d bytes from %d to %d: byte %d has changed", n, off[1], off[0], i)
				}
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() { Copy(from[:4096], from[8192:]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestShort: like copy, it stops at the end of the shorter one.
func TestShort(t *testing.T) {
	to := make([]byte, 8192)
	Copy(to[:4096], bytes.Repeat([]byte{1}, 8192))
	if !bytes.Equal(to, append(bytes.Repeat([]byte{1}, 4096), make([]byte, 4096)...)) {
		t.Error("it wrote beyond the destination")
	}
}

// BenchmarkCopy copies to places all over a memory of that size from a source that
// is in the processor's cache, in these ways.
func BenchmarkCopy(b *testing.B) {
	ways := []struct {
		name string
		copy func(dst, src []byte)
	}{{"ordinary", func(dst, src []byte) { copy(dst, src) }}, {"memcopy", Copy}}
	for _, mib := range []int{256, 1} {
		memory := bytes.Repeat([]byte{1}, mib<<20)
		for _, n := range []int{4 << 10, 256 << 10} {
			order, src := rand.Perm(len(memory)/n), make([]byte, n+48)
			for _, way := range ways {
				b.Run(fmt.Sprintf("%dMiB/%dKiB/%s", mib, n>>10, way.name), func(b *testing.B) {
					b.SetBytes(int64(n))
					for i := range b.N {
						at := order[i%len(order)] * n
						way.copy(memory[at:at+n], src[48:])
					}
				})
			}
		}
	}
}
