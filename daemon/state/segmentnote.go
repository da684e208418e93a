package state

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"lunar/internal/durable"
)

// SegmentNote is what the state directory knows of a segment that may have data
// which are nowhere else: that of a server that runs, or that did not end in
// order. Its sealed file has a line with the segment's path, and one for each volume
// with its identity in the cache and the path of its store.
type SegmentNote struct {
	StateDir string
	Path     string            // of the segment; empty: there is none
	Volumes  map[uint64]string // paths of stores by identity
	Orphans  []uint64          // volumes that nobody serves now
	Old      bool              // it was read from a file without seal or mark
}

// File is where the note is.
func (n *SegmentNote) File() Marked { return Marked{NoteKind, n.StateDir, "segment.note"} }

// NoteKind is that of the sealed file.
const NoteKind = "segment.note"

// ReadSegmentNote returns an empty note if the last server ended in order.
func ReadSegmentNote(stateDir string) (SegmentNote, error) {
	n := SegmentNote{StateDir: stateDir, Volumes: map[uint64]string{}}
	text, sealed, err := n.File().Read()
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	n.Old = !sealed || !n.File().Mark().There()
	for line := range strings.Lines(string(text)) {
		if wrong := n.add(strings.TrimSuffix(line, "\n")); wrong != nil && err == nil {
			err = fmt.Errorf("found %.100q, expected an identity and a quoted path: %w", line, wrong)
		}
	}
	if err == nil && n.Text() != string(text) {
		err = fmt.Errorf("found %.100q, expected %.100q: %w", text, n.Text(), durable.ErrDamaged)
	}
	if err != nil {
		return n, fmt.Errorf("note of the cache segment %s: %w; without it nobody knows which segment may have data that are not written: put a copy back; or, if the last server stopped in order, the machine was restarted since, or the configuration names the same cache.segment as before, %s",
			n.File().Path(), err, n.File().Without())
	}
	return n, nil
}

// add reads a line. The segment's own has no identity.
func (n *SegmentNote) add(line string) error {
	id, quoted, _ := strings.Cut(line, " ")
	path, err := strconv.Unquote(quoted)
	if err == nil && id == ownLine {
		n.Path = path
		return nil
	}
	number, noID := strconv.ParseUint(id, 16, 64)
	n.Volumes[number] = path
	return errors.Join(err, noID)
}

// Text is what the file has.
func (n *SegmentNote) Text() string {
	text := fmt.Sprintf("%s %q\n", ownLine, n.Path)
	for _, id := range slices.Sorted(maps.Keys(n.Volumes)) {
		text += fmt.Sprintf("%016x %q\n", id, n.Volumes[id])
	}
	return text
}

// ownLine begins the line with the segment's path.
const ownLine = "segment"

// Write replaces the note; one that names no volume is removed.
func (n *SegmentNote) Write() (err error) {
	if len(n.Volumes) == 0 {
		err = n.File().Remove()
	} else {
		err = n.File().Write([]byte(n.Text()))
	}
	if err != nil {
		return fmt.Errorf("note of the cache segment: %w", err)
	}
	return nil
}

// ForgetOpen notes that nothing is dirty but what orphans have.
func (n *SegmentNote) ForgetOpen() error {
	left := map[uint64]string{}
	for _, id := range n.Orphans {
		left[id] = n.Volumes[id]
	}
	n.Volumes = left
	return n.Write()
}
