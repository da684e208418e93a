package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/internal/durable"
)

// MarkDir is where the state directory has the marks of its small files.
const MarkDir = ".kept"

// Marked is a small sealed file of the state directory that decides something. Its
// mark is of the same name below MarkDir.
type Marked struct {
	Kind string // of the sealed file
	Dir  string // the state directory
	Name string // in it
}

// ErrLost says that there is no file where there was one.
var ErrLost = errors.New("found no file, and there was one")

// Path is the file's.
func (m Marked) Path() string { return filepath.Join(m.Dir, m.Name) }

// Mark is its mark.
func (m Marked) Mark() durable.Mark { return durable.Mark(filepath.Join(m.Dir, MarkDir, m.Name)) }

// Read returns the contents and whether they were sealed. The error is fs.ErrNotExist
// where there never was a file.
func (m Marked) Read() (payload []byte, sealed bool, err error) {
	payload, sealed, err = durable.ReadSealed(m.Path(), m.Kind)
	if errors.Is(err, fs.ErrNotExist) && m.Mark().There() {
		err = ErrLost
	}
	return payload, sealed, err
}

// Write makes the payload stable, whole or not at all.
func (m Marked) Write(payload []byte) error { return WriteAll(nil, []Payload{{m, payload}}) }

// Payload is what is to be in a file.
type Payload struct {
	Marked
	Payload []byte
}

// WriteAll is Write of several files, which a batch makes stable together.
func WriteAll(b *durable.Batch, all []Payload) error {
	var files []durable.Contents
	var marks []durable.Mark
	for i, p := range all {
		if i == 0 || filepath.Dir(p.Path()) != filepath.Dir(all[i-1].Path()) {
			if err := durable.MakeDir(filepath.Dir(p.Path())); err != nil {
				return err
			}
		}
		files = append(files, durable.Contents{Path: p.Path(), Data: durable.Seal(p.Kind, p.Payload)})
		marks = append(marks, p.Mark())
	}
	if err := b.Replace(files); err != nil {
		return err
	}
	return b.MakeMarks(marks)
}

// Remove removes the file, if there is one.
func (m Marked) Remove() error {
	if err := m.Mark().Remove(); err != nil {
		return err
	}
	return durable.Remove(m.Path())
}

// Without is what an administrator does to go on without the file.
func (m Marked) Without() string {
	switch {
	case durable.Absent(m.Path()):
		return fmt.Sprintf("remove its mark %s", m.Mark())
	case !m.Mark().There():
		return "move it away"
	}
	return fmt.Sprintf("move it and its mark %s away", m.Mark())
}
