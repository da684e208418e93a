package durable

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrForeign says that something else is where one of our own files belongs.
var ErrForeign = errors.New("remove it if nobody needs it")

// Open opens a small file of our own, as open(2) does with flags, and O_CREAT makes it
// for its owner alone. It never waits, follows no link at its name, and refuses what
// is not ours to write: another kind of file, and for writing also one with a second
// name (a hard link) or another owner than root, the user of the process and the owner
// of the directory. Symbolic links may lead to its directory.
func Open(path string, flags int) (*os.File, error) {
	fd, err := Descriptor(path, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Descriptor is Open for who uses the descriptor and closes it.
func Descriptor(path string, flags int) (fd int, err error) {
	var dir unix.Stat_t
	err = within(filepath.Dir(path), func(d openDirectory) error {
		if err := unix.Fstat(int(d.Fd()), &dir); err != nil {
			return err
		}
		fd, err = d.descriptor(filepath.Base(path), flags)
		return err
	})
	if err != nil {
		return -1, foreignKind(path, err)
	}
	if err := ours(fd, dir.Uid, flags&unix.O_ACCMODE != unix.O_RDONLY); err != nil {
		return -1, errors.Join(fmt.Errorf("%s: %w", path, err), unix.Close(fd))
	}
	return fd, nil
}

// foreignKind names what opening without following or waiting fails for.
func foreignKind(path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%s: found a symbolic link, expected a regular file: %w", path, ErrForeign)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV), errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%s: found a pipe, socket, device or directory, expected a regular file: %w", path, ErrForeign)
	}
	return err
}

func ours(fd int, owner uint32, write bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("found a pipe, device or directory, expected a regular file: %w", ErrForeign)
	case write && st.Nlink > 1:
		return fmt.Errorf("found a file with %d names (hard links), expected one that is written here alone: %w", st.Nlink, ErrForeign)
	case write && st.Uid != 0 && st.Uid != owner && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("found a file of user %d, expected one of user %d: %w", st.Uid, os.Geteuid(), ErrForeign)
	}
	return nil
}

// maxFile is the greatest length of a small file in bytes: what somebody has put in its
// place must not take the memory of the server.
const maxFile = 64 << 20

// Read returns the contents of a small file of our own, as Open opens it.
func Read(path string) ([]byte, error) {
	f, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := short(path, info.Size()); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func short(path string, n int64) error {
	if n > maxFile {
		return fmt.Errorf("%s: found %d bytes, expected at most %d: %w", path, n, maxFile, ErrForeign)
	}
	return nil
}
