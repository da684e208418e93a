package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"lunar/cache/segment"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/bytesize"
)

// NoteVolumes notes volumes that are opened while the daemon runs, before they
// are served. It refuses the store of a volume whose unwritten data the cache
// keeps under another identity.
func (a *Set) NoteVolumes(volumes []conf.Volume) error {
	a.noting.Lock()
	defer a.noting.Unlock()
	if a.note == nil {
		return nil
	}
	orphans := map[medium.Key][]uint64{}
	for _, o := range a.note.Orphans {
		if key, ok := medium.KeyOf(a.note.Volumes[o]); ok {
			orphans[key] = append(orphans[key], o)
		}
	}
	for i := range volumes {
		v, id := &volumes[i], a.volumeID(&volumes[i])
		if key, ok := medium.KeyOf(medium.Path(v)); ok && slices.ContainsFunc(orphans[key], func(o uint64) bool { return o != id }) {
			return fmt.Errorf("volume %s: found unwritten data for %s in the cache, from a volume of another name or serial: give it back those", v.Name, medium.Path(v))
		}
		if v.Cache != nil && v.Write == conf.WriteBack {
			a.note.Orphans = slices.DeleteFunc(a.note.Orphans, func(o uint64) bool { return o == id })
			a.note.Volumes[id] = medium.Path(v)
		}
	}
	return a.note.Write()
}

// Unnote forgets volumes that are closed, and have nothing unwritten.
func (a *Set) Unnote(volumes []conf.Volume) error {
	a.noting.Lock()
	defer a.noting.Unlock()
	if a.note == nil {
		return nil
	}
	for i := range volumes {
		delete(a.note.Volumes, a.volumeID(&volumes[i]))
	}
	return a.note.Write()
}

// NoteOrphan notes that nobody serves a volume any more of which the cache keeps data.
func (a *Set) NoteOrphan(v *conf.Volume) {
	a.noting.Lock()
	defer a.noting.Unlock()
	if a.note != nil {
		a.note.Orphans = append(a.note.Orphans, a.volumeID(v))
	}
}

// OrphanStore is where the data of an orphan belong, as far as it is known.
func (a *Set) OrphanStore(id uint64) string {
	a.noting.Lock()
	defer a.noting.Unlock()
	if a.note == nil || a.note.Volumes[id] == "" {
		return "its file or device"
	}
	return a.note.Volumes[id]
}

// ForgetOrphan notes that the cache keeps nothing of an orphan any more.
func (a *Set) ForgetOrphan(id uint64) error {
	a.noting.Lock()
	defer a.noting.Unlock()
	if a.note == nil {
		return nil
	}
	a.note.Orphans = slices.DeleteFunc(a.note.Orphans, func(o uint64) bool { return o == id })
	delete(a.note.Volumes, id)
	return a.note.Write()
}

// CheckLeftover looks after the segment of a server before this one, which did
// not end in order: it refuses a configuration with another segment, path, that
// would forget data in it, and says so if it is gone.
func CheckLeftover(n *state.SegmentNote, path string, log *slog.Logger) error {
	if n.Path == "" {
		return nil
	}
	d, err := segment.Describe(n.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Warn("the cache segment of the last run, which did not end in order, is gone: as after a power cut, writes that initiators had not flushed may be lost",
			"segment", n.Path, "reason", "the machine was restarted, or somebody removed the file")
		return nil
	case err != nil:
		return err
	case n.Path == path:
		return nil // attaching it decides
	case d.Refused != nil:
		return d.Refused
	case d.Dirty > 0:
		return fmt.Errorf("cache segment %s: found %s of unwritten data of the last run, which did not end in order, in a segment that this configuration does not use; start once with cache.segment: %s and stop in order, or remove the file to give the data up",
			n.Path, bytesize.Text(d.Dirty), filepath.Dir(n.Path))
	}
	log.Info("a cache segment that is not used any more keeps its memory until it is removed", "segment", n.Path, "size", bytesize.Text(d.Size))
	return nil
}
