package systemd

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
)

// kept begins the names of what Keep has given.
const kept = "kept_"

// stored is a name as the manager takes it: without colons.
func stored(name string) string { return kept + strings.ReplaceAll(name, ":", "_") }

// Take returns the descriptor that an earlier process of the service has kept under a
// name, once; it is the caller's. nil: there is none.
func (s *Service) Take(name string) *os.File {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.given[stored(name)]
	delete(s.given, stored(name))
	return f
}

// Keep has the manager keep a descriptor for the next process of the service. It stays
// the caller's.
func (s *Service) Keep(name string, f syscall.Conn) error {
	return s.tell(f, "FDSTORE=1", "FDNAME="+stored(name))
}

// Drop has the manager close what it keeps under a name, and waits for that: a socket
// that it has open would be in the way of a new one. In a server that ends, it does
// nothing.
func (s *Service) Drop(name string) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	if ending {
		return nil
	}
	return s.drop(stored(name))
}

// DropOthers closes what was kept under other names than these, here and at the manager.
func (s *Service) DropOthers(names []string) error {
	if s == nil {
		return nil
	}
	wanted := make([]string, len(names))
	for i, n := range names {
		wanted[i] = stored(n)
	}
	s.mu.Lock()
	var other []string
	for name, f := range s.given {
		if !slices.Contains(wanted, name) {
			other = append(other, name)
			f.Close()
			delete(s.given, name)
		}
	}
	s.mu.Unlock()
	return s.drop(other...)
}

func (s *Service) drop(names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, s.tell(nil, "FDSTOREREMOVE=1", "FDNAME="+name))
	}
	if len(names) > 0 {
		errs = append(errs, s.barrier())
	}
	return errors.Join(errs...)
}
