package protect

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Config says what to protect, and how.
type Config struct {
	Data   backstore.Store // of whole logical blocks; the store takes it over
	Path   string          // of the sidecar file; it is made if there is none and ID is zero
	ID     ID              // that the sidecar file must have; zero: any, or none yet
	Type   Type
	Block  int          // size of a logical block in bytes
	Logger *slog.Logger // nil is slog.Default
}

// Store is a backing store with protection information. Reads and writes are of
// whole logical blocks.
type Store struct {
	shape   shape // but for its size, which changes
	id      ID
	data    backstore.Store
	tuples  backstore.Store
	regions *regions
	ranges  ranges
	wrong   atomic.Uint64
	anew    uint64 // blocks whose tuples Open has made anew

	ended    bool  // the data are closed
	endError error // what was wrong with the rest

	loop     atomic.Pointer[evloop.Loop] // of some lane; nil: there was none yet
	resizing sync.Mutex
	size     shape        // that the header tells; under resizing
	end      atomic.Int64 // its bytes; changes under a claim of all blocks
}

// CheckError says that a block is not what its tuple says.
type CheckError struct {
	LBA   uint64
	Field Field
}

// Error implements error.
func (e *CheckError) Error() string {
	names := [...]string{GuardField: "guard", AppField: "application tag", RefField: "reference tag"}
	return fmt.Sprintf("protection information: wrong %s of block %d", names[e.Field], e.LBA)
}

// Open adds protection information to a store. After a crash it first makes the
// tuples anew where they may be wrong. On error the data store is left open.
func Open(c Config) (*Store, error) {
	s := &Store{data: c.Data, shape: shape{c.Type, c.Block, c.Data.Info().Size, version}}
	s.end.Store(s.shape.size)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if err := s.open(c); err != nil {
		return nil, fmt.Errorf("protection information: %w", err)
	}
	return s, nil
}

func (s *Store) open(c Config) (err error) {
	info := c.Data.Info()
	if info.Size%int64(c.Block) != 0 {
		return fmt.Errorf("found %d bytes, expected whole blocks of %d", info.Size, c.Block)
	}
	if err := Recognise(c.Path, c.ID); err != nil {
		return err
	}
	if !info.ReadOnly {
		if err := adopt(c.Path, s.shape); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	s.tuples, err = backstore.OpenFile(backstore.FileConfig{
		Path: c.Path, Size: s.shape.fileSize(), ReadOnly: info.ReadOnly, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	log, err := openJournal(c.Path, s.shape)
	if err != nil {
		return errors.Join(err, s.tuples.Close())
	}
	if s.id, err = log.identify(info.ReadOnly); err != nil {
		return errors.Join(err, log.close(), s.tuples.Close())
	}
	if err := s.settle(log, c.Logger); err != nil {
		return errors.Join(err, log.close(), s.tuples.Close())
	}
	s.size = s.shape
	s.regions = newRegions(log, s.shape.regionShift(), s.reserve)
	return nil
}

// settle makes data and tuples agree after a crash, and the log one of this version.
func (s *Store) settle(log *journal, logger *slog.Logger) error {
	s.shape = s.shape.of(log.version)
	if err := s.recover(log, logger); err != nil {
		return err
	}
	if s.shape.version == version || s.data.Info().ReadOnly {
		return nil
	}
	s.shape = s.shape.of(version)
	return log.upgrade(s.shape)
}

// Info implements backstore.Store.
func (s *Store) Info() backstore.Info {
	info := s.bounds()
	info.Describe += fmt.Sprintf(" with protection information of type %d", s.shape.kind)
	return info
}

// bounds is Info as far as operations are held against it.
func (s *Store) bounds() backstore.Info {
	info := s.data.Info()
	info.BlockSize = max(info.BlockSize, s.shape.block)
	if info.Discard {
		info.DiscardGran = max(info.DiscardGran, s.shape.block)
	}
	return info
}

// ID is the identity of the sidecar file; zero if it has none yet and must not be
// written.
func (s *Store) ID() ID { return s.id }

// Type is the protection type.
func (s *Store) Type() Type { return s.shape.kind }

// Dirty implements backstore.WriteBack for a store that does.
func (s *Store) Dirty() int64 {
	if w, ok := s.data.(backstore.WriteBack); ok {
		return w.Dirty()
	}
	return 0
}

// Space implements backstore.Spacious for a store that does: the tuples are not
// counted.
func (s *Store) Space() (backstore.Space, error) { return backstore.SpaceOf(s.data) }

// Temperature implements backstore.Thermal for a store that does.
func (s *Store) Temperature() (int, error) { return backstore.TemperatureOf(s.data) }

// Wrong is how many reads have found a block that is not what its tuple says.
func (s *Store) Wrong() uint64 { return s.wrong.Load() }

// Anew is of how many blocks Open has made the tuples anew, because they did not fit and
// their regions were being written when the server or the machine stopped.
func (s *Store) Anew() uint64 { return s.anew }

// Lane implements backstore.Store.
func (s *Store) Lane(loop *evloop.Loop) (backstore.Lane, error) {
	l := &lane{store: s, loop: loop}
	s.loop.Store(loop)
	var err error
	if l.data, err = s.data.Lane(loop); err != nil {
		return nil, err
	}
	if l.tuples, err = s.tuples.Lane(loop); err != nil {
		l.data.Close()
		return nil, err
	}
	return l, nil
}

// Close implements backstore.Store. When the data cannot be closed, nothing else
// is: the store goes on, and Close may be called again.
func (s *Store) Close() error {
	if !s.ended {
		readOnly := s.data.Info().ReadOnly
		if err := s.data.Close(); err != nil {
			return err
		}
		s.ended = true
		err := s.tuples.Close() // which, as that of the data, makes them stable
		s.endError = errors.Join(err, s.regions.close(err == nil, readOnly), s.regions.log.close())
	}
	return s.endError
}
