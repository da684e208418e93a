package durable

import (
	"errors"
	"io/fs"
	"os"
)

// Absent reports that there is nothing at a path. What cannot be looked at counts as
// there.
func Absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Mark is the path of an empty file that says that another one exists: a file that was
// deleted is not taken for one that never was. The empty Mark is none, which is never
// there.
//
// INVARIANT: a mark is made after its file and removed before it. So a file without a
// mark, which a crash or an earlier version leaves, counts and gets one, and a mark
// without a file is a loss.
type Mark string

// There reports whether the mark says that its file exists.
func (m Mark) There() bool { return !Absent(string(m)) }

// Make makes the mark of a file that there is, and the directory that it is in.
func (m Mark) Make() error {
	return (*Batch)(nil).MakeMarks([]Mark{m})
}

// Remove removes the mark of a file that is to go, if there is one.
func (m Mark) Remove() error {
	if !m.There() {
		return nil
	}
	return Remove(string(m))
}
