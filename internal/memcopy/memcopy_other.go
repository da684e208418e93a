//go:build !amd64 || race

package memcopy

import "sync/atomic"

// StoreOrdered stores v behind all that the thread has stored before, and before all that it
// stores afterwards.
func StoreOrdered(word *uint64, v uint64) { atomic.StoreUint64(word, v) }

// Copy copies src to dst, which must be as long and must not overlap it.
func Copy(dst, src []byte) { copy(dst, src) }
