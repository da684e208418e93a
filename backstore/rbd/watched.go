package rbd

import (
	"fmt"
	"sync/atomic"

	"lunar/backstore"
)

// Opened implements backstore.Stamper.
func (s *Store) Opened() (backstore.Stamp, bool) { return s.opened, s.opened != backstore.Stamp{} }

// Stamp implements backstore.Stamper.
func (s *Store) Stamp() (backstore.Stamp, error) {
	if err := s.fence.Load(); err != nil {
		return backstore.Stamp{}, *err
	}
	if s.info.Load().ReadOnly {
		return backstore.Stamp{}, fmt.Errorf("stamp of %s, which others may write to: %w", s.what, backstore.ErrUnsupported)
	}
	return stampOf(s.identity, s.instance.Address(), s.claimed()), nil
}

// Watch implements backstore.Watched.
func (s *Store) Watch(word *atomic.Uint64) { s.changes.Watch(word) }

// Quiet implements backstore.Watched.
func (s *Store) Quiet() (begun uint64, quiet bool) { return s.changes.Quiet() }

// Exact implements backstore.Watched.
func (s *Store) Exact() bool { return !s.info.Load().ReadOnly }
