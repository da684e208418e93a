// Package memstore is a Store for tests that knows what a power cut would leave:
// only what was flushed or written with FUA is certain to survive.
package memstore

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Sector is the store's block size in bytes, and what a power cut keeps or
// loses as a whole.
const Sector = 512

// Config says how a Store is made.
type Config struct {
	Size  int64 // bytes, a multiple of Sector
	Async bool  // TryNow refuses, and ops end in a later task of the loop
}

// Store is a volume in Go memory behind a volatile write cache. It is safe for
// concurrent use.
type Store struct {
	config Config
	mu     struct {
		sync.Mutex
		size    int64
		current []byte             // what reads return
		durable []byte             // what is on stable media
		pending map[int64][][]byte // by sector: what it held since it was stable, oldest first
		mapped  []bool             // by sector
	}
}

// New returns a store of zeroes, nothing of it provisioned.
func New(c Config) (*Store, error) {
	if c.Size <= 0 || c.Size%Sector != 0 {
		return nil, fmt.Errorf("memstore of %d bytes: expected a positive multiple of %d", c.Size, Sector)
	}
	s := &Store{config: c}
	s.mu.size = c.Size
	s.mu.current, s.mu.durable = make([]byte, c.Size), make([]byte, c.Size)
	s.mu.pending = make(map[int64][][]byte)
	s.mu.mapped = make([]bool, c.Size/Sector)
	return s, nil
}

// CrashClone returns the store as it may be after a power cut now. Every sector
// holds what was last made stable or, by chance, something newer that was
// written to it; seed decides which. The original goes on unharmed.
func (s *Store) CrashClone(seed uint64) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	clone, err := New(Config{Size: s.mu.size, Async: s.config.Async})
	if err != nil {
		panic(err) // the configuration was good enough for s
	}
	copy(clone.mu.durable, s.mu.durable)
	copy(clone.mu.mapped, s.mu.mapped)
	random := rand.New(rand.NewPCG(seed, 0))
	for sector := range s.mu.size / Sector { // in order, so that seed decides alone
		versions := s.mu.pending[sector]
		if kept := random.IntN(len(versions) + 1); kept > 0 {
			copy(clone.mu.durable[sector*Sector:], versions[kept-1])
		}
		if len(versions) > 0 && !clone.mu.mapped[sector] { // the release may be what was lost
			clone.mu.mapped[sector] = !bytes.Equal(clone.mu.durable[sector*Sector:][:Sector], make([]byte, Sector))
		}
	}
	copy(clone.mu.current, clone.mu.durable)
	return clone
}

// Bytes returns a copy of what reads would return now.
func (s *Store) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]byte(nil), s.mu.current...)
}

// Unstable returns how many sectors a power cut could change.
func (s *Store) Unstable() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.pending)
}

// Info implements backstore.Store.
func (s *Store) Info() backstore.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info()
}

func (s *Store) info() backstore.Info {
	return backstore.Info{
		Size: s.mu.size, BlockSize: Sector, PhysicalBlock: Sector,
		Discard: true, DiscardGran: Sector, DiscardZeroes: true,
		VolatileCache: true, Thin: true, Describe: "memstore",
		MaxAtomic: 256 << 10, AtomicUnit: Sector,
	}
}

// Resize implements backstore.Resizer. It is stable at once.
func (s *Store) Resize(size int64) error {
	if size <= 0 || size%Sector != 0 {
		return fmt.Errorf("memstore of %d bytes: expected a positive multiple of %d", size, Sector)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.size = size
	s.mu.current, s.mu.durable = fit(s.mu.current, size), fit(s.mu.durable, size)
	s.mu.mapped = fit(s.mu.mapped, size/Sector)
	maps.DeleteFunc(s.mu.pending, func(sector int64, _ [][]byte) bool { return sector >= size/Sector })
	return nil
}

// fit returns the first n of s, with zeroes behind if there are fewer.
func fit[T any](s []T, n int64) []T {
	fitted := make([]T, n)
	copy(fitted, s)
	return fitted
}

// Lane implements backstore.Store.
func (s *Store) Lane(l *evloop.Loop) (backstore.Lane, error) { return &lane{s, l}, nil }

// Close implements backstore.Store.
func (s *Store) Close() error { return nil }

// do performs op.
func (s *Store) do(op *backstore.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := s.info()
	if err := backstore.Check(op, &info); err != nil {
		return err
	}
	switch op.Kind {
	case backstore.Read:
		copy(op.Data, s.mu.current[op.Off:])
	case backstore.Write:
		s.change(op, op.Data, true)
	case backstore.Discard:
		s.change(op, make([]byte, op.Len), false)
	case backstore.WriteZeroes:
		s.change(op, make([]byte, op.Len), true)
	case backstore.Flush:
		for sector := range s.mu.pending { // all others are stable already
			copy(s.mu.durable[sector*Sector:][:Sector], s.mu.current[sector*Sector:])
		}
		clear(s.mu.pending)
	case backstore.Map:
		op.Mapped, op.Len = s.extent(op.Off, op.Len)
	}
	return nil
}

// change stores data at op.Off, on stable media only with FUA.
func (s *Store) change(op *backstore.Op, data []byte, mapped bool) {
	copy(s.mu.current[op.Off:], data)
	for at := int64(0); at < int64(len(data)); at += Sector {
		sector := (op.Off + at) / Sector
		s.mu.mapped[sector] = mapped
		version := data[at : at+Sector]
		if op.FUA {
			copy(s.mu.durable[sector*Sector:], version)
			delete(s.mu.pending, sector)
			continue
		}
		s.mu.pending[sector] = append(s.mu.pending[sector], append([]byte(nil), version...))
	}
}

// extent returns the state of the sector at off and how far, at most n bytes,
// its neighbours share it.
func (s *Store) extent(off, n int64) (mapped bool, length int64) {
	if n == 0 {
		return false, 0
	}
	mapped = s.mu.mapped[off/Sector]
	for length < n && s.mu.mapped[(off+length)/Sector] == mapped {
		length += Sector
	}
	return mapped, length
}

// lane is one event thread's access to a Store.
type lane struct {
	store *Store
	loop  *evloop.Loop
}

// TryNow implements backstore.Lane.
func (l *lane) TryNow(op *backstore.Op) bool {
	if l.store.config.Async {
		return false
	}
	op.Err = l.store.do(op)
	return true
}

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	if l.TryNow(op) {
		return true
	}
	l.loop.Post(evloop.Func(func() {
		op.Err = l.store.do(op)
		op.Done(op)
	}))
	return false
}

// Close implements backstore.Lane.
func (l *lane) Close() {}
