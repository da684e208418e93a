package protect

import (
	"errors"
	"fmt"
	"math"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Resize implements backstore.Resizer, for data that do. Nothing else happens to the
// volume meanwhile: what is under way is waited for, what comes later waits.
//
// Each step leaves files that Open takes: a sidecar file for fewer bytes than there
// are grows with them, and what it has behind its end is dropped.
func (s *Store) Resize(size int64) error {
	s.resizing.Lock()
	defer s.resizing.Unlock()
	if _, ok := s.data.(backstore.Resizer); !ok {
		return fmt.Errorf("resize %s: %w", s.Info().Describe, backstore.ErrUnsupported)
	}
	if size <= 0 || size%int64(s.shape.block) != 0 {
		return fmt.Errorf("resize %s: size %d: expected a positive multiple of %d bytes", s.Info().Describe, size, s.shape.block)
	}
	whole := s.claimWhole()
	defer s.ranges.release(whole)
	old := s.size
	var err error
	if size < old.size {
		err = s.shrink(old, old.to(size))
	} else if size > old.size {
		err = s.grow(old, old.to(size))
	}
	if err != nil {
		return fmt.Errorf("resize protection information of %s: %w", s.data.Info().Describe, err)
	}
	return nil
}

// claimWhole claims all blocks.
func (s *Store) claimWhole() *claim {
	held := make(chan struct{})
	c := &claim{to: math.MaxInt64, writes: true, loop: s.loop.Load(), then: evloop.Func(func() { close(held) })}
	if c.loop != nil && !s.ranges.take(c) { // without a lane nothing is under way
		<-held
	}
	return c
}

// grow has the data grow first: the header never promises more than there are.
func (s *Store) grow(from, to shape) error {
	if err := backstore.Resize(s.data, to.size); err != nil {
		return err
	}
	err := backstore.Resize(s.tuples, to.fileSize())
	if err == nil {
		err = s.reshape(from, to)
	}
	if err != nil {
		return errors.Join(err, backstore.Resize(s.data, from.size), backstore.Resize(s.tuples, from.fileSize()))
	}
	return nil
}

// shrink makes the header promise less before there is less. Tuples that are left
// behind the end must not be found by a volume that grows again.
func (s *Store) shrink(from, to shape) error {
	if err := s.reshape(from, to); err != nil {
		return err
	}
	if err := backstore.Resize(s.data, to.size); err != nil {
		return errors.Join(err, s.reshape(to, from))
	}
	return errors.Join(s.regions.log.wipe(to), backstore.Resize(s.tuples, to.fileSize()))
}

// reshape writes the header for another size. Where regions are of another size
// then, the log says before that all are dirty, which holds for both.
func (s *Store) reshape(from, to shape) error {
	r := s.regions
	if from.regionShift() != to.regionShift() {
		if err := r.dirtyAll(); err != nil {
			return err
		}
	}
	if err := r.log.put(to.header(), 0); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	r.shift = to.regionShift()
	s.size = to
	s.end.Store(to.size)
	return nil
}
