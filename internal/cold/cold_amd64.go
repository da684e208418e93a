//go:build !race

package cold

import (
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

// move copies n bytes upwards. What is stored after it returns becomes visible to
// others after the copy.
//
//go:noescape
func move(dst, src unsafe.Pointer, n int)

// Copy copies src to dst, which must be as long and must not overlap it.
func Copy(dst, src []byte) {
	to := unsafe.Pointer(unsafe.SliceData(dst))
	if len(src) < least || len(dst) < len(src) || uintptr(to)%line != 0 || !cpu.X86.HasERMS {
		copy(dst, src)
		return
	}
	move(to, unsafe.Pointer(unsafe.SliceData(src)), len(src))
}
