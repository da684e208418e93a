//go:build !race

package memcopy

import (
	"time"
	"unsafe"

	"golang.org/x/sys/cpu"
)

const (
	// least is the length from which the string instruction, which takes a while
	// to start, is worth it.
	least = 2 << 10
	// line is the alignment of the destination without which some processors
	// (Zen 3 and 4) are many times slower.
	line = 64
)

// fast says whether the string instruction is what its feature bit promises.
var fast = cpu.X86.HasERMS && tried()

// tried looks whether the string instruction keeps up with an ordinary copy inside the
// processor's cache. An emulated processor has the bit as well, and moves byte by byte.
func tried() bool {
	const n, rounds, times = 16 << 10, 8, 3
	memory := make([]byte, 2*n+line)
	from := memory[:n]
	to := memory[n+line-int(uintptr(unsafe.Pointer(&memory[n]))%line):][:n]
	ordinary, strings := time.Hour, time.Hour
	for range rounds {
		began := time.Now()
		copy(to, from)
		half := time.Now()
		move(unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from)), n)
		ordinary, strings = min(ordinary, half.Sub(began)), min(strings, time.Since(half))
	}
	return strings < times*ordinary
}

// move copies n bytes upwards. What is stored after it returns becomes visible to
// others after the copy.
//
//go:noescape
func move(dst, src unsafe.Pointer, n int)

// StoreOrdered stores v behind all that the thread has stored before, and before all that it
// stores afterwards. An atomic store would do the same and wait until the processor's
// cache has all of it, which takes longer than all else where something was copied.
//
//go:noescape
func StoreOrdered(word *uint64, v uint64)

// Copy copies src to dst, which must be as long and must not overlap it.
func Copy(dst, src []byte) {
	to := unsafe.Pointer(unsafe.SliceData(dst))
	if len(src) < least || len(dst) < len(src) || uintptr(to)%line != 0 || !fast {
		copy(dst, src)
		return
	}
	move(to, unsafe.Pointer(unsafe.SliceData(src)), len(src))
}
