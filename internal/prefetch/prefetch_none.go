//go:build !amd64 && !arm64

package prefetch

import "unsafe"

// At does nothing here.
func At(unsafe.Pointer, int) {}

// Bytes does nothing here.
func Bytes([]byte) {}
