//go:build !amd64

package protect

func guard(b []byte) uint16 { return guardTable(0, b) }
