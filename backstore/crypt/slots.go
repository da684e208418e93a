package crypt

import (
	"errors"
	"io"
)

// A header file has two slots, each with a page of its own. The valid one with the
// higher generation counts. A change writes the other slot, makes it stable and then
// overwrites the old one with zeroes: whatever happens in between, there is the old
// master key or the new one, and in the end no copy of the old one.
const (
	slotSize = 4096
	fileSize = 2 * slotSize
)

// file is what a header file is read and written by.
type file interface {
	// ReadAt fills b from off on.
	ReadAt(b []byte, off int64) error
	// WriteStable writes b and makes it stable.
	WriteStable(b []byte, off int64) error
	io.Closer
}

// slots is a header file. It implements Place.
type slots struct {
	file
	known  bool // which slot counts
	counts int
	left   bool // the other one had something at first
}

// FileOf are the contents of the header file of a header.
func FileOf(header []byte) []byte {
	b := make([]byte, fileSize)
	copy(b, header)
	return b
}

// Load implements Place.
func (s *slots) Load() ([]byte, error) {
	if s.known {
		b := make([]byte, headerSize)
		return b, s.ReadAt(b, int64(s.counts)*slotSize)
	}
	var all [2][]byte
	for i := range all {
		all[i] = make([]byte, slotSize)
		if err := s.ReadAt(all[i], int64(i)*slotSize); err != nil {
			return nil, err
		}
	}
	best, err := newest(all)
	if err != nil {
		return nil, err
	}
	s.known, s.counts, s.left = true, best, !zero(all[1-best])
	return all[best][:headerSize], nil
}

// newest returns the slot that counts.
func newest(all [2][]byte) (int, error) {
	best := -1
	for i, b := range all {
		switch err := valid(b); {
		case errors.Is(err, errNone):
		case err != nil:
			return 0, err
		case best < 0 || generationOf(b) > generationOf(all[best]):
			best = i
		}
	}
	if best < 0 {
		return 0, errNone
	}
	return best, nil
}

// Settle implements Place: it overwrites the slot that does not count.
func (s *slots) Settle() error {
	if !s.left {
		return nil
	}
	return s.wipe(1 - s.counts)
}

// Store implements Place.
func (s *slots) Store(next []byte, _ string) error {
	b, other := make([]byte, slotSize), 1-s.counts
	copy(b, next)
	if err := s.WriteStable(b, int64(other)*slotSize); err != nil {
		if again := s.wipe(other); again != nil {
			return errors.Join(ErrDoubt, err, again)
		}
		return err
	}
	s.counts = other
	if err := s.wipe(1 - other); err != nil {
		return errors.Join(errRemains, err)
	}
	return nil
}

// wipe overwrites a slot.
func (s *slots) wipe(slot int) error {
	return s.WriteStable(make([]byte, slotSize), int64(slot)*slotSize)
}
