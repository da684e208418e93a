package backstore

import (
	"fmt"
	"sync/atomic"

	"lunar/internal/evloop"
	"lunar/internal/quiesce"
)

// nullStore is nothing but a size.
type nullStore struct {
	info     atomic.Pointer[Info]
	counters quiesce.Counters
}

// NewNull returns a Store of size bytes that forgets what is written and reads
// as zeroes, for measuring everything else. Reading costs clearing the buffer,
// which holds other commands' data before; writing costs nothing. blockBytes
// is the block size of the logical unit in bytes; 0 is 512.
func NewNull(size int64, blockBytes int) (Store, error) {
	if err := checkVolatile(size, blockBytes); err != nil {
		return nil, err
	}
	s := &nullStore{}
	s.info.Store(&Info{
		Size: size, BlockSize: 1, PhysicalBlock: pageSize,
		Discard: true, DiscardGran: sector, DiscardZeroes: true, Thin: true, Describe: "null",
	})
	return s, nil
}

// Info implements Store.
func (s *nullStore) Info() Info { return *s.info.Load() }

// Lane implements Store.
func (s *nullStore) Lane(l *evloop.Loop) (Lane, error) {
	return newInlineLane(l, s.do, &s.counters), nil
}

// Resize implements Resizer.
func (s *nullStore) Resize(size int64) error {
	if err := checkVolatile(size, 0); err != nil {
		return fmt.Errorf("resize null store: %w", err)
	}
	info := s.Info()
	info.Size = size
	s.info.Store(&info)
	return nil
}

// Close implements Store.
func (s *nullStore) Close() error { return nil }

func (s *nullStore) do(op *Op) error {
	if err := Check(op, s.info.Load()); err != nil {
		return err
	}
	switch op.Kind {
	case Read:
		clear(op.Data)
	case Map:
		op.Mapped = false
	}
	return nil
}
