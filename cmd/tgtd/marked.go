package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/internal/durable"
)

// markDir is where the state directory has the marks of its small files.
const markDir = ".kept"

// marked is a small sealed file of the state directory that decides something. Its
// mark, an empty file of the same name below markDir, says that there is one: a file
// that was deleted is not taken for one that never was.
//
// INVARIANT: a mark is made after its file and removed before it. So a file without a
// mark, which a crash or an earlier version leaves, counts and gets one, and a mark
// without a file is a loss.
type marked struct {
	kind string // of the sealed file
	dir  string // the state directory
	name string // in it
}

// errLost says that there is no file where there was one.
var errLost = errors.New("found no file, and there was one")

func (m marked) path() string { return filepath.Join(m.dir, m.name) }

func (m marked) mark() string { return filepath.Join(m.dir, markDir, m.name) }

// read returns the contents and whether they were sealed. The error is fs.ErrNotExist
// where there never was a file.
func (m marked) read() (payload []byte, sealed bool, err error) {
	payload, sealed, err = durable.ReadSealed(m.path(), m.kind)
	if errors.Is(err, fs.ErrNotExist) && !absent(m.mark()) {
		err = errLost
	}
	return payload, sealed, err
}

// note makes the mark of a file that there is.
func (m marked) note() error {
	if !absent(m.mark()) {
		return nil
	}
	if err := durable.MakeDir(filepath.Dir(m.mark())); err != nil {
		return err
	}
	return durable.Replace(m.mark(), nil)
}

// write makes the payload stable, whole or not at all.
func (m marked) write(payload []byte) error {
	if err := durable.MakeDir(filepath.Dir(m.path())); err != nil {
		return err
	}
	if err := durable.ReplaceSealed(m.path(), m.kind, payload); err != nil {
		return err
	}
	return m.note()
}

// remove removes the file, if there is one.
func (m marked) remove() error {
	if err := durable.Remove(m.mark()); err != nil {
		return err
	}
	return durable.Remove(m.path())
}

// without is what an administrator does to go on without the file.
func (m marked) without() string {
	switch {
	case absent(m.path()):
		return "remove its mark " + m.mark()
	case absent(m.mark()):
		return "move it away"
	}
	return fmt.Sprintf("move it and its mark %s away", m.mark())
}
