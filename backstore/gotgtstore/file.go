package gotgtstore

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// fileStore is a store whose driver serves a file.
type fileStore struct {
	*store
	file fileItself
}

// fileItself is the file as a file store has it.
type fileItself interface {
	backstore.Store
	backstore.Watched
	backstore.Patient
	backstore.Resizer
}

// open opens the file before the driver does, which locks it and completes what was
// interrupted.
func (s *fileStore) open(describe string, c backstore.FileConfig) error {
	c.Size, c.Direct, c.Sync = 0, false, false
	file, err := backstore.OpenFile(c)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w; gotgt's driver makes none", c.Path, unix.ENOENT)
	}
	if err != nil {
		return err
	}
	s.file = file.(fileItself)
	info := file.Info()
	s.describe(backstore.Info{
		Size: info.Size, PhysicalBlock: info.PhysicalBlock, Rotational: info.Rotational,
		VolatileCache: info.VolatileCache, ReadOnly: info.ReadOnly, Describe: describe + " " + c.Path,
	})
	if err := s.start(c.Path); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := s.same(c.Path, info.Size); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// same refuses a driver that has opened something else than what is locked.
func (s *fileStore) same(path string, size int64) error {
	found, err := backstore.Look(path)
	if err != nil {
		return err
	}
	if was, ok := s.file.Opened(); found.Missing || ok && found.Identity.Medium() != was.Medium {
		return fmt.Errorf("%s: found another file than a moment before", path)
	}
	if n := int64(s.plugin.Size(&s.device)); n != size {
		return fmt.Errorf("%s: the driver found %d bytes, expected %d", path, n, size)
	}
	return nil
}

// Lane implements backstore.Store.
func (s *fileStore) Lane(l *evloop.Loop) (backstore.Lane, error) {
	data, err := s.newLane(l)
	if err != nil {
		return nil, err
	}
	file, err := s.file.Lane(l)
	if err != nil {
		data.Close()
		return nil, err
	}
	return &fileLane{data, file}, nil
}

// fileLane is the lane of the driver, and that of the file.
type fileLane struct {
	*lane
	file backstore.Lane
}

// Submit implements backstore.Lane. The log of atomic writes is the file's: it may have
// data of a time when no driver served it.
func (l *fileLane) Submit(op *backstore.Op) bool {
	if op.Kind == backstore.Wipe {
		return l.file.Submit(op)
	}
	return l.lane.Submit(op)
}

// Close implements backstore.Lane.
func (l *fileLane) Close() {
	l.file.Close()
	l.lane.Close()
}

// Close implements backstore.Store.
func (s *fileStore) Close() error { return errors.Join(s.end(), s.file.Close()) }

// Resize implements backstore.Resizer: drivers go by the offsets that they are given.
func (s *fileStore) Resize(size int64) error {
	return s.resize(size, func() error { return s.file.Resize(size) })
}

// Opened implements backstore.Stamper.
func (s *fileStore) Opened() (backstore.Stamp, bool) { return s.file.Opened() }

// Stamp implements backstore.Stamper.
func (s *fileStore) Stamp() (backstore.Stamp, error) { return s.file.Stamp() }

// Watch implements backstore.Watched.
func (s *fileStore) Watch(word *atomic.Uint64) {
	s.changes.Watch(word)
	s.file.Watch(word)
}

// Quiet implements backstore.Watched.
func (s *fileStore) Quiet() (begun uint64, quiet bool) {
	own, ownQuiet := s.changes.Quiet()
	its, itsQuiet := s.file.Quiet()
	return own + its, ownQuiet && itsQuiet
}

// Exact implements backstore.Watched.
func (s *fileStore) Exact() bool { return s.file.Exact() }

// Troubles implements backstore.Patient.
func (s *fileStore) Troubles() []backstore.Trouble {
	out := s.file.Troubles()
	if err := s.damage.Load(); err != nil {
		out = append(out, backstore.Trouble{Failed: true, What: (*err).Error()})
	}
	return out
}

// Temperature implements backstore.Thermal.
func (s *fileStore) Temperature() (int, error) { return backstore.TemperatureOf(s.file) }

// Examine implements backstore.Patient.
func (s *fileStore) Examine() []backstore.Trouble { return s.file.Examine() }
