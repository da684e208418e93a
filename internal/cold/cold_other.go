//go:build !amd64 || race

package cold

// Copy copies src to dst, which must be as long and must not overlap it.
func Copy(dst, src []byte) { copy(dst, src) }
