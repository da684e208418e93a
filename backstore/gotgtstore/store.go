package gotgtstore

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/gostor/gotgt/pkg/api"
	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/internal/changes"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// zeroChunk bounds one write of zeroes, in bytes.
const zeroChunk = 256 << 10

// store is a driver that has been opened.
type store struct {
	plugin api.BackingStore
	device api.SCSILu // what the driver may know of the logical unit: nothing
	blank  bool       // it keeps nothing
	block  int64      // of the logical unit, in bytes
	log    *slog.Logger
	info   atomic.Pointer[backstore.Info]
	zeroes []byte

	damage   atomic.Pointer[error] // a sync that has failed
	resizing sync.Mutex
	counters quiesce.Counters // of the lanes
	changes  changes.Counts
	count    *changes.Count // of all lanes: beside a worker's way it costs nothing
}

// Info implements backstore.Store.
func (s *store) Info() backstore.Info { return *s.info.Load() }

// Lane implements backstore.Store.
func (s *store) Lane(l *evloop.Loop) (backstore.Lane, error) { return s.newLane(l) }

func (s *store) newLane(l *evloop.Loop) (*lane, error) {
	if l.Workers() == nil {
		return nil, fmt.Errorf("%s on event loop %q: it has no workers for calls that block", s.Info().Describe, l.Name())
	}
	n := &lane{store: s, loop: l}
	s.counters.Add(&n.counter, l)
	return n, nil
}

// Close implements backstore.Store.
func (s *store) Close() error { return s.end() }

// do performs op. It blocks.
func (s *store) do(op *backstore.Op) error {
	if op.Kind.Changes() {
		s.count.Begin()
		defer s.count.End()
	}
	switch op.Kind {
	case backstore.Read:
		return s.read(op)
	case backstore.Write:
		if err := s.plugin.Write(op.Data, op.Off); err != nil {
			return err
		}
	case backstore.WriteZeroes:
		if err := s.zero(op.Off, op.Len); err != nil {
			return err
		}
	case backstore.Flush:
		return s.sync(0, s.Info().Size)
	case backstore.Map:
		op.Mapped = !s.blank
	}
	if op.FUA && op.Kind.Changes() {
		return s.sync(op.Off, op.Length())
	}
	return nil
}

func (s *store) read(op *backstore.Op) error {
	data, err := s.plugin.Read(op.Off, op.Length())
	if err != nil {
		return err
	}
	if s.blank && len(data) == 0 {
		clear(op.Data)
		return nil
	}
	if len(data) != len(op.Data) {
		return fmt.Errorf("the driver read %d bytes, expected %d", len(data), len(op.Data))
	}
	copy(op.Data, data)
	return nil
}

func (s *store) zero(off, n int64) error {
	for n > 0 {
		chunk := min(n, zeroChunk)
		if err := s.plugin.Write(s.zeroes[:chunk], off); err != nil {
			return err
		}
		off, n = off+chunk, n-chunk
	}
	return nil
}

// sync makes a range stable. After an error all later ones fail: the kernel drops what
// it could not write and tells that once, so that the next would promise too much.
func (s *store) sync(off, n int64) error {
	if err := s.damage.Load(); err != nil {
		return *err
	}
	err := s.plugin.DataSync(off, n)
	for errors.Is(err, unix.EINTR) {
		err = s.plugin.DataSync(off, n)
	}
	if err != nil {
		lost := fmt.Errorf("data written earlier may be lost since the driver could not make them stable; check the file and restart: %w", err)
		if s.damage.CompareAndSwap(nil, &lost) {
			s.log.Error("a gotgt driver failed to make data stable: flushes of this store fail from now on", "store", s.Info().Describe, "err", err)
		}
	}
	return err
}

// Resize implements backstore.Resizer.
func (s *store) Resize(size int64) error { return s.resize(size, func() error { return nil }) }

// resize calls change where no operation is under way that it would harm.
func (s *store) resize(size int64, change func() error) error {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	old := s.Info()
	if size <= 0 || size%s.block != 0 {
		return fmt.Errorf("resize %s: size %d: expected a positive multiple of %d", old.Describe, size, s.block)
	}
	if old.ReadOnly {
		return fmt.Errorf("resize %s: %w", old.Describe, backstore.ErrReadOnly)
	}
	if size < old.Size { // a write behind the new end would make the file longer again
		s.setSize(size)
		s.counters.Wait()
	}
	if err := change(); err != nil {
		s.setSize(old.Size)
		return fmt.Errorf("resize %s: %w", old.Describe, err)
	}
	s.setSize(size)
	return nil
}

func (s *store) setSize(size int64) {
	info := s.Info()
	info.Size = size
	s.info.Store(&info)
}
