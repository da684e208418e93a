package crypt

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// ID tells a header from those of other volumes. It is random, and stays when the
// master key or the key that wraps it is replaced.
type ID [16]byte

// String returns hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ErrNotIts says that a header is not the one that the volume had: with its master key
// the data would read as noise, and what is written would be lost with the right one.
var ErrNotIts = errors.New("another volume's header")

// Recognise looks at the identity of a header file before anything is changed. What is
// wrong with the file itself is found later.
func Recognise(path string, want ID) error {
	if want == (ID{}) {
		return nil
	}
	b, err := ReadFile(path)
	if err != nil {
		return err
	}
	var h header
	if h.decode(b); h.identity != want {
		return notIts(h.identity, want)
	}
	return nil
}

func notIts(found, want ID) error {
	return fmt.Errorf("found identity %v, expected %v: %w", found, want, ErrNotIts)
}
