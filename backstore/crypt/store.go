package crypt

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// Config says what to encipher, and how.
type Config struct {
	Data   backstore.Store // of whole logical blocks; the store takes it over
	Path   string          // of the header file, which there is
	Header Place           // of the header, if it is in no file; the store takes it over
	Key    *Key            // that wraps the master key
	OldKey *Key            // that did so before, if Key does not open the header; nil: none
	Block  int             // size of a logical block, which is the data unit, in bytes: 512 or 4096
	ID     ID              // that the header must have; zero: any
	Logger *slog.Logger    // nil is slog.Default
}

// suffix follows what a store says of itself.
const suffix = ", encrypted"

// Store is a backing store of cipher text that reads and writes clear text, of whole
// logical blocks.
type Store struct {
	data     backstore.Store
	unit     int
	describe string
	log      *slog.Logger

	keys     atomic.Pointer[keys]
	counters quiesce.Counters // of what is under way with a key

	erasing sync.Mutex // guards the header
	header  *header

	closing  sync.Once
	endError error
}

// Mark tells the master key of a store from others, and nothing of it.
func (s *Store) Mark() string { return markText(s.keys.Load().mark) }

// Open enciphers a store. On error the data store and Header are left open.
func Open(c Config) (*Store, error) {
	info := c.Data.Info()
	if c.Block < 16 || c.Block > maxUnit || info.Size%int64(c.Block) != 0 || c.Block%max(1, info.BlockSize) != 0 {
		return nil, fmt.Errorf("encryption: found %d bytes in blocks of %d, expected whole blocks of %d", info.Size, info.BlockSize, c.Block)
	}
	h, master, err := c.open(info.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	s := &Store{data: c.Data, unit: c.Block, describe: info.Describe + suffix, log: c.Logger, header: h}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.keys.Store(keysOf(master))
	clear(master[:])
	return s, nil
}

// open opens the header.
func (c *Config) open(readOnly bool) (*header, *[MasterSize]byte, error) {
	if c.Header != nil {
		return openHeader(c.Header, c.Key, c.OldKey, c.Block, c.ID, readOnly)
	}
	at, err := openFile(c.Path, readOnly)
	if err != nil {
		return nil, nil, err
	}
	h, master, err := openHeader(at, c.Key, c.OldKey, c.Block, c.ID, readOnly)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("header file %s: %w", c.Path, err), at.Close())
	}
	return h, master, nil
}

// ID is that of the header.
func (s *Store) ID() ID { return s.header.identity }

// Info implements backstore.Store.
func (s *Store) Info() backstore.Info {
	info := enciphered(s.data.Info(), s.unit)
	info.Describe = s.describe
	return info
}

// Describe is what a store is like when it is enciphered in data units of unit bytes.
func Describe(info backstore.Info, unit int) backstore.Info {
	info = enciphered(info, unit)
	info.Describe += suffix
	return info
}

// enciphered is Describe but for the name, which would have to be made for each operation.
func enciphered(info backstore.Info, unit int) backstore.Info {
	info.BlockSize = max(info.BlockSize, unit)
	info.CryptoErase = !info.ReadOnly
	if info.Discard {
		info.DiscardGran = max(info.DiscardGran, unit)
	}
	if info.MaxAtomic > 0 {
		info.MaxAtomic, info.AtomicUnit = min(info.MaxAtomic, largeSize), max(info.AtomicUnit, unit)
	}
	return info
}

// Lane implements backstore.Store.
func (s *Store) Lane(l *evloop.Loop) (backstore.Lane, error) {
	if l.Workers() == nil {
		return nil, fmt.Errorf("%s on event loop %q: it has no workers to encipher with", s.describe, l.Name())
	}
	inner, err := s.data.Lane(l)
	if err != nil {
		return nil, err
	}
	lane := &lane{store: s, loop: l, inner: inner, tweaks: new(tweaks)}
	s.counters.Add(&lane.counter, l)
	return lane, nil
}

// Close implements backstore.Store. When the data cannot be closed, nothing else is.
func (s *Store) Close() error {
	if err := s.data.Close(); err != nil {
		return err
	}
	s.closing.Do(func() { s.endError = s.header.place.Close() })
	return s.endError
}

// Resize implements backstore.Resizer for a store that does.
func (s *Store) Resize(size int64) error {
	if size%int64(s.unit) != 0 {
		return fmt.Errorf("resize %s: size %d: expected a multiple of %d bytes", s.describe, size, s.unit)
	}
	return backstore.Resize(s.data, size)
}

// Space implements backstore.Spacious for a store that does.
func (s *Store) Space() (backstore.Space, error) { return backstore.SpaceOf(s.data) }

// Temperature implements backstore.Thermal for a store that does.
func (s *Store) Temperature() (int, error) { return backstore.TemperatureOf(s.data) }

// Opened implements backstore.Stamper for a store that does.
func (s *Store) Opened() (backstore.Stamp, bool) {
	stamper, ok := s.data.(backstore.Stamper)
	if !ok {
		return backstore.Stamp{}, false
	}
	stamp, ok := stamper.Opened()
	return s.marked(stamp), ok
}

// Stamp implements backstore.Stamper for a store that does.
func (s *Store) Stamp() (backstore.Stamp, error) {
	stamper, ok := s.data.(backstore.Stamper)
	if !ok {
		return backstore.Stamp{}, fmt.Errorf("stamp of %s: %w", s.describe, backstore.ErrUnsupported)
	}
	stamp, err := stamper.Stamp()
	return s.marked(stamp), err
}

// Watch implements backstore.Watched.
func (s *Store) Watch(word *atomic.Uint64) {
	if w, ok := s.data.(backstore.Watched); ok {
		w.Watch(word)
	}
}

// Quiet implements backstore.Watched.
func (s *Store) Quiet() (begun uint64, quiet bool) {
	w, ok := s.data.(backstore.Watched)
	if !ok {
		return 0, false
	}
	return w.Quiet()
}

// Exact implements backstore.Watched for a store that is.
func (s *Store) Exact() bool {
	w, ok := s.data.(backstore.Watched)
	return ok && w.Exact()
}

// marked makes a medium with another master key another medium.
func (s *Store) marked(stamp backstore.Stamp) backstore.Stamp {
	stamp.Medium[2] ^= s.keys.Load().mark
	return stamp
}

// Rewrap wraps the master key with the key of another key file, stable when it
// returns, and returns the key that did so before. The data stay as they are. After an
// error that key does so still, or either.
func (s *Store) Rewrap(key *Key) (was *Key, err error) {
	s.erasing.Lock()
	defer s.erasing.Unlock()
	was = s.header.key
	switch {
	case key.Fingerprint() == was.Fingerprint():
		return was, nil
	case s.data.Info().ReadOnly:
		return was, fmt.Errorf("key of %s: %w", s.describe, backstore.ErrReadOnly)
	}
	if err := s.header.rewrap(key); err != nil {
		return was, fmt.Errorf("key of %s: %w", s.describe, err)
	}
	return was, nil
}

// rekey makes another master key and returns when nothing is under way any more with
// the one before. It must not be called on an event thread.
func (s *Store) rekey() error {
	s.erasing.Lock()
	defer s.erasing.Unlock()
	master := freshMaster()
	next := keysOf(master)
	err := s.header.replace(master)
	clear(master[:])
	switch {
	case errors.Is(err, ErrDoubt):
		next = &keys{err: fmt.Errorf("%s: %w: %w; open the volume anew", s.describe, ErrDoubt, backstore.ErrGone)}
	case err != nil && !errors.Is(err, errRemains):
		return fmt.Errorf("erase %s: %w", s.describe, err)
	}
	s.keys.Store(next)
	s.counters.Wait()
	if err != nil {
		return fmt.Errorf("erase %s: %w", s.describe, err)
	}
	s.log.Info("the master key of a volume has been replaced: its old data are gone", "store", s.describe)
	return nil
}
