package volumes

import (
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/backstore/evidence"
)

// ErrChanged is in the error of judge for a store that somebody else has changed, or
// that is another one, while the cache has unwritten data for it.
var ErrChanged = errors.New("unwritten data of the store as it was")

// Judge decides about a store while there are unwritten data for it, in bytes.
func (r Row) Judge(noted evidence.Noted, seen evidence.Seen, dirty int64, adopt bool) (belief evidence.Belief, why string, err error) {
	belief, why = evidence.Content(noted, seen)
	if belief == evidence.Changed && dirty > 0 && !adopt {
		err = fmt.Errorf("the cache holds %d bytes of %w, volume %q, and %s", dirty, ErrChanged, r.Name(), why)
	}
	return belief, why, err
}

// Fits is of a store of size bytes, with the stamp that it was opened with, and of dirty
// data up to the end, in sub-blocks of sub bytes; cut says that what lies behind the size of
// before is to be dropped.
func (r Row) Fits(size, end, sub int64, opened backstore.Stamp) (cut bool, err error) {
	was := r.Size()
	switch {
	case was > 0 && end > was/sub*sub && (was == size || was < size && !uncut(r, size, opened)):
		return true, nil
	case end <= size:
		return false, nil
	}
	return false, fmt.Errorf("the cache holds unwritten data up to byte %d, the store has %d bytes now and had %d: give it at least its old size, so that they can be written", min(end, max(was, size)), size, was)
}

// uncut reports whether a process ended before it could cut the store, which has still
// the size that it had, and did not get it back by being opened.
func uncut(r Row, size int64, opened backstore.Stamp) bool {
	known := opened != backstore.Stamp{}
	grown := known && !opened.Device() && int64(opened.State[0]) < size
	return int64(r.load(atBefore)) == size && !grown
}
