package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/daemon/medium"
	"lunar/internal/durable"
)

// MarkDir is where the state directory has the marks of its small files.
const MarkDir = ".kept"

// Marked is a small sealed file of the state directory that decides something. Its
// mark, an empty file of the same name below MarkDir, says that there is one: a file
// that was deleted is not taken for one that never was.
//
// INVARIANT: a mark is made after its file and removed before it. So a file without a
// mark, which a crash or an earlier version leaves, counts and gets one, and a mark
// without a file is a loss.
type Marked struct {
	Kind string // of the sealed file
	Dir  string // the state directory
	Name string // in it
}

// ErrLost says that there is no file where there was one.
var ErrLost = errors.New("found no file, and there was one")

// Path is the file's.
func (m Marked) Path() string { return filepath.Join(m.Dir, m.Name) }

// Mark is the path of its mark.
func (m Marked) Mark() string { return filepath.Join(m.Dir, MarkDir, m.Name) }

// Read returns the contents and whether they were sealed. The error is fs.ErrNotExist
// where there never was a file.
func (m Marked) Read() (payload []byte, sealed bool, err error) {
	payload, sealed, err = durable.ReadSealed(m.Path(), m.Kind)
	if errors.Is(err, fs.ErrNotExist) && !medium.Absent(m.Mark()) {
		err = ErrLost
	}
	return payload, sealed, err
}

// Note makes the mark of a file that there is.
func (m Marked) Note() error {
	if !medium.Absent(m.Mark()) {
		return nil
	}
	if err := durable.MakeDir(filepath.Dir(m.Mark())); err != nil {
		return err
	}
	return durable.Replace(m.Mark(), nil)
}

// Write makes the payload stable, whole or not at all.
func (m Marked) Write(payload []byte) error {
	if err := durable.MakeDir(filepath.Dir(m.Path())); err != nil {
		return err
	}
	if err := durable.ReplaceSealed(m.Path(), m.Kind, payload); err != nil {
		return err
	}
	return m.Note()
}

// Remove removes the file, if there is one.
func (m Marked) Remove() error {
	if err := durable.Remove(m.Mark()); err != nil {
		return err
	}
	return durable.Remove(m.Path())
}

// Without is what an administrator does to go on without the file.
func (m Marked) Without() string {
	switch {
	case medium.Absent(m.Path()):
		return "remove its mark " + m.Mark()
	case medium.Absent(m.Mark()):
		return "move it away"
	}
	return fmt.Sprintf("move it and its mark %s away", m.Mark())
}
