package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lunar/cache/segment"
	"lunar/conf"
	"lunar/internal/arena"
	"lunar/internal/durable"
)

// segmentNote is what the state directory knows of a segment that may have data
// which are nowhere else: that of a server that runs, or that did not end in
// order. Its sealed file has a line with the segment's path, and one for each volume
// with its identity in the cache and the path of its store.
type segmentNote struct {
	stateDir string
	path     string            // of the segment; empty: there is none
	volumes  map[uint64]string // paths of stores by identity
	orphans  []uint64          // volumes that nobody serves now
	old      bool              // it was read from a file without seal or mark
}

func (n *segmentNote) file() marked { return marked{noteKind, n.stateDir, "segment.note"} }

// noteKind is that of the sealed file.
const noteKind = "segment.note"

// readNote returns an empty note if the last server ended in order.
func readNote(stateDir string) (segmentNote, error) {
	n := segmentNote{stateDir: stateDir, volumes: map[uint64]string{}}
	text, sealed, err := n.file().read()
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	n.old = !sealed || absent(n.file().mark())
	for line := range strings.Lines(string(text)) {
		if wrong := n.add(strings.TrimSuffix(line, "\n")); wrong != nil && err == nil {
			err = fmt.Errorf("found %.100q, expected an identity and a quoted path: %w", line, wrong)
		}
	}
	if err == nil && n.text() != string(text) {
		err = fmt.Errorf("found %.100q, expected %.100q: %w", text, n.text(), durable.ErrDamaged)
	}
	if err != nil {
		return n, fmt.Errorf("note of the cache segment %s: %w; without it nobody knows which segment may have data that are not written: put a copy back; or, if the last server stopped in order, the machine was restarted since, or the configuration names the same cache.segment as before, %s",
			n.file().path(), err, n.file().without())
	}
	return n, nil
}

// add reads a line. The segment's own has no identity.
func (n *segmentNote) add(line string) error {
	id, quoted, _ := strings.Cut(line, " ")
	path, err := strconv.Unquote(quoted)
	if err == nil && id == ownLine {
		n.path = path
		return nil
	}
	number, noID := strconv.ParseUint(id, 16, 64)
	n.volumes[number] = path
	return errors.Join(err, noID)
}

// text is what the file has.
func (n *segmentNote) text() string {
	text := fmt.Sprintf("%s %q\n", ownLine, n.path)
	for _, id := range slices.Sorted(maps.Keys(n.volumes)) {
		text += fmt.Sprintf("%016x %q\n", id, n.volumes[id])
	}
	return text
}

// noteVolumes notes volumes that are opened while the daemon runs, before they
// are served. It refuses the store of a volume whose unwritten data the cache
// keeps under another identity.
func (d *daemon) noteVolumes(volumes []conf.Volume) error {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.note == nil {
		return nil
	}
	orphans := map[storeKey][]uint64{}
	for _, o := range d.note.orphans {
		if key, ok := keyOfStore(d.note.volumes[o]); ok {
			orphans[key] = append(orphans[key], o)
		}
	}
	for i := range volumes {
		v, id := &volumes[i], d.assembly.volumeID(&volumes[i])
		if key, ok := keyOfStore(storePath(v)); ok && slices.ContainsFunc(orphans[key], func(o uint64) bool { return o != id }) {
			return fmt.Errorf("volume %s: found unwritten data for %s in the cache, from a volume of another name or serial: give it back those", v.Name, storePath(v))
		}
		if v.Cache != nil && v.Write == conf.WriteBack {
			d.note.orphans = slices.DeleteFunc(d.note.orphans, func(o uint64) bool { return o == id })
			d.note.volumes[id] = storePath(v)
		}
	}
	return d.note.write()
}

// unnote forgets volumes that are closed, and have nothing unwritten.
func (d *daemon) unnote(volumes []conf.Volume) error {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.note == nil {
		return nil
	}
	for i := range volumes {
		delete(d.note.volumes, d.assembly.volumeID(&volumes[i]))
	}
	return d.note.write()
}

// noteOrphan notes that nobody serves a volume any more of which the cache keeps data.
func (d *daemon) noteOrphan(v *conf.Volume) {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.note != nil {
		d.note.orphans = append(d.note.orphans, d.assembly.volumeID(v))
	}
}

// orphanStore is where the data of an orphan belong, as far as it is known.
func (d *daemon) orphanStore(id uint64) string {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.note == nil || d.note.volumes[id] == "" {
		return "its file or device"
	}
	return d.note.volumes[id]
}

// forgetOrphan notes that the cache keeps nothing of an orphan any more.
func (d *daemon) forgetOrphan(id uint64) error {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.note == nil {
		return nil
	}
	d.note.orphans = slices.DeleteFunc(d.note.orphans, func(o uint64) bool { return o == id })
	delete(d.note.volumes, id)
	return d.note.write()
}

// ownLine begins the line with the segment's path.
const ownLine = "segment"

// write replaces the note; one that names no volume is removed.
func (n *segmentNote) write() (err error) {
	if len(n.volumes) == 0 {
		err = n.file().remove()
	} else {
		err = n.file().write([]byte(n.text()))
	}
	if err != nil {
		return fmt.Errorf("note of the cache segment: %w", err)
	}
	return nil
}

// forgetOpen notes that nothing is dirty but what orphans have.
func (n *segmentNote) forgetOpen() error {
	left := map[uint64]string{}
	for _, id := range n.orphans {
		left[id] = n.volumes[id]
	}
	n.volumes = left
	return n.write()
}

// checkLeftover looks after the segment of a server before this one, which did
// not end in order: it refuses a configuration with another segment, path, that
// would forget data in it, and says so if it is gone.
func (n *segmentNote) checkLeftover(path string, log *slog.Logger) error {
	if n.path == "" {
		return nil
	}
	d, err := segment.Describe(n.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Warn("the cache segment of the last run, which did not end in order, is gone: as after a power cut, writes that initiators had not flushed may be lost",
			"segment", n.path, "reason", "the machine was restarted, or somebody removed the file")
		return nil
	case err != nil:
		return err
	case n.path == path:
		return nil // attaching it decides
	case d.Refused != nil:
		return d.Refused
	case d.Dirty > 0:
		return fmt.Errorf("cache segment %s: found %s of unwritten data of the last run, which did not end in order, in a segment that this configuration does not use; start once with cache.segment: %s and stop in order, or remove the file to give the data up",
			n.path, arena.Bytes(d.Dirty), filepath.Dir(n.path))
	}
	log.Info("a cache segment that is not used any more keeps its memory until it is removed", "segment", n.path, "size", arena.Bytes(d.Size))
	return nil
}
