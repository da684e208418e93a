package crypt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrOtherKey says that a header has another master key than data were enciphered with.
var ErrOtherKey = errors.New("the master key is another one than that of then")

// Duplicate makes a header file for another volume, at a path where nothing is, with the master
// key of the one at path from, for data that share their blocks. Key opens both. ErrOtherKey
// says that the master key is not that of mark.
func Duplicate(from, to string, key *Key, unit int, mark string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("header file %s: found one, expected a path where nothing is", to)
	}
	b, err := ReadFile(from)
	if err != nil {
		return err
	}
	h := &header{key: key}
	_, master, err := h.read(b, nil, unit, ID{})
	if err != nil {
		return fmt.Errorf("header file %s: %w", from, err)
	}
	defer clear(master[:])
	if markText(markOf(master)) != mark {
		return fmt.Errorf("header file %s: %w", from, ErrOtherKey)
	}
	return WriteFile(to, newHeader(key, unit).encode(master))
}
