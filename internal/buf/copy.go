package buf

import (
	"sync/atomic"

	"lunar/internal/invariants"
)

var copied atomic.Uint64

// Copy is copy, for data between a transport and a store. In `invariants` builds
// what it copies is counted, so that a test can prove that some way has no copies.
func Copy(dst, src []byte) int {
	n := copy(dst, src)
	if invariants.Enabled {
		copied.Add(uint64(n))
	}
	return n
}

// Copied is how many bytes Copy has copied in this process, 0 in other builds.
func Copied() uint64 { return copied.Load() }
