package crypt

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"lunar/internal/locked"
)

// keys are what data are enciphered with, or why they cannot be.
type keys struct {
	*xts
	mark uint64 // of the master key
	err  error
}

// keysOf expands a master key.
func keysOf(master *[MasterSize]byte) *keys {
	return &keys{xts: newXTS(master), mark: markOf(master)}
}

// markOf tells a master key from others, and nothing of it.
func markOf(master *[MasterSize]byte) uint64 {
	h := sha256.New()
	defer locked.Wipe(h)
	h.Write([]byte("lunar master key\x00"))
	h.Write(master[:])
	return binary.LittleEndian.Uint64(h.Sum(nil))
}

func markText(mark uint64) string { return fmt.Sprintf("%016x", mark) }

func freshMaster() *[MasterSize]byte {
	m := new([MasterSize]byte)
	_, _ = rand.Read(m[:]) // never fails
	return m
}
