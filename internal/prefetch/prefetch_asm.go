//go:build amd64 || arm64

package prefetch

import "unsafe"

// line is the unit of the CPU's cache in bytes.
const line = 64

// lines prefetches n lines, 1 or more.
//
//go:noescape
func lines(first unsafe.Pointer, n int)

// At begins to bring n bytes at p, at least 1, into the CPU's second-level cache.
func At(p unsafe.Pointer, n int) {
	before := uintptr(p) % line
	lines(unsafe.Add(p, -int(before)), (int(before)+n+line-1)/line)
}

// Bytes begins to bring b into the CPU's second-level cache and does not wait for
// it. Addresses that cannot be read are no error.
func Bytes(b []byte) {
	if len(b) > 0 {
		lines(unsafe.Pointer(unsafe.SliceData(b)), (len(b)+line-1)/line)
	}
}
