package backstore

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space is what a store takes, and what is left for it.
type Space struct {
	Used      int64 // bytes that its mapped ranges take
	Available int64 // bytes for those that are not, maybe shared with others
}

// Spacious is a Store that may know its space.
type Spacious interface {
	// Space may block. ErrUnsupported says that the store cannot tell.
	Space() (Space, error)
}

// SpaceOf returns the space of s, or says with ErrUnsupported that s does not
// know it.
func SpaceOf(s Store) (Space, error) {
	if known, ok := s.(Spacious); ok {
		return known.Space()
	}
	return Space{}, fmt.Errorf("space of %s: %w", s.Info().Describe, ErrUnsupported)
}

// Space implements Spacious: for a file, what its file system has left for users
// other than root. A device cannot tell.
func (v *volume) Space() (Space, error) {
	if v.device {
		return Space{}, fmt.Errorf("space of %s: %w", v.path, ErrUnsupported)
	}
	var st unix.Stat_t
	if err := unix.Fstat(v.fd, &st); err != nil {
		return Space{}, fmt.Errorf("space of %s: %w", v.path, err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(v.fd, &fs); err != nil {
		return Space{}, fmt.Errorf("space of %s: %w", v.path, err)
	}
	const statBlock = 512 // stat(2), whatever the file system's blocks are
	return Space{Used: st.Blocks * statBlock, Available: int64(fs.Bavail) * fs.Bsize}, nil
}
