package rbd

import (
	"fmt"

	"lunar/backstore"
)

// follow notes the sizes that others give the image, until it is closed.
func (s *Store) follow() {
	for range s.image.Changed() {
		if s.measure() && s.Resized != nil {
			s.Resized()
		}
	}
}

// measure asks for the size, and reports whether it is another one than the store's.
func (s *Store) measure() (differs bool) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return false
	}
	s.resizing.Lock() // or it may be what this store is about to say itself
	defer s.resizing.Unlock()
	g, err := s.image.Geometry()
	if err != nil {
		s.Logger.Warn("an image has changed, and does not say how", "image", s.Image, "err", err)
		return false
	}
	s.outside.Store(g.Size)
	_, differs = s.SizeOutside()
	return differs
}

// SizeOutside returns the size that the image has in the cluster, where that is another one
// than the store's: it is to be resized to that.
func (s *Store) SizeOutside() (size int64, differs bool) {
	size = s.outside.Load()
	return size, size > 0 && size != s.Info().Size
}

// Resize implements backstore.Resizer. An image that has the size already is left alone:
// somebody has resized it.
func (s *Store) Resize(size int64) error {
	s.open.RLock()
	defer s.open.RUnlock()
	s.resizing.Lock()
	defer s.resizing.Unlock()
	if s.closed {
		return fmt.Errorf("resize %s: it is closed", s.what)
	}
	if err := s.resize(size); err != nil {
		return fmt.Errorf("resize %s to %d bytes: %w", s.what, size, err)
	}
	return nil
}

func (s *Store) resize(size int64) error {
	if size <= 0 || size%int64(s.BlockSize) != 0 {
		return fmt.Errorf("expected a positive multiple of the block size %d", s.BlockSize)
	}
	g, err := s.image.Geometry()
	if err != nil {
		return err
	}
	old := s.Info().Size
	if size < old { // nothing is under way behind the end when it is cut
		s.setSize(size)
		s.counters.Wait()
	}
	if g.Size != size {
		if s.ReadOnly {
			err = backstore.ErrReadOnly
		} else {
			err = s.image.Resize(size)
		}
	}
	if err != nil {
		s.setSize(old)
		return err
	}
	s.outside.Store(size)
	s.setSize(size)
	s.Logger.Info("image resized", "image", s.Image, "from", old, "to", size)
	return nil
}

func (s *Store) setSize(size int64) {
	info := s.Info()
	info.Size = size
	s.info.Store(&info)
}
