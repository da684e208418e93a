package crypt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lunar/internal/durable"
)

// headerFile is a header's file in a file system.
type headerFile struct{ *os.File }

// ReadAt implements file.
func (f headerFile) ReadAt(b []byte, off int64) error {
	n, err := f.File.ReadAt(b, off)
	if err == io.EOF {
		clear(b[n:])
		err = nil
	}
	return err
}

// WriteStable implements file.
func (f headerFile) WriteStable(b []byte, off int64) error {
	if _, err := f.WriteAt(b, off); err != nil {
		return err
	}
	return f.Sync()
}

// openRead opens a file for reading without waiting for what may be a pipe.
func openRead(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// HasHeader reports whether there is a header file at path, whatever state it is in.
func HasHeader(path string) (bool, error) {
	f, err := openRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	for _, at := range []int64{0, slotSize} {
		var b [len(magic)]byte
		if n, _ := f.ReadAt(b[:], at); string(b[:n]) == magic {
			return true, nil
		}
	}
	return false, nil
}

// Create makes the header file of a volume with data units of unit bytes, whose
// master key is random. It refuses where there is a file already: without a header
// the data of its volume are lost.
func Create(path string, key *Key, unit int) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("it exists already; without it the data of its volume are lost")
		}
		return fmt.Errorf("header file %s: %w", path, err)
	}
	header, _ := First(key, unit)
	return WriteFile(path, header)
}

// WriteFile makes a header file, or another header of it.
func WriteFile(path string, header []byte) error {
	if err := durable.Replace(path, FileOf(header)); err != nil {
		return fmt.Errorf("header file: %w", err)
	}
	return nil
}

// ReadFile returns the header of a header file, of which nothing is changed.
func ReadFile(path string) ([]byte, error) {
	f, err := openRead(path)
	if err != nil {
		return nil, fmt.Errorf("header file: %w", err)
	}
	defer f.Close()
	b, err := (&slots{file: headerFile{f}}).Load()
	if err != nil {
		return nil, fmt.Errorf("header file %s: %w", path, err)
	}
	return b, nil
}

// Verify reports what is wrong with a header file, or with the keys for it; nothing is
// changed. Old may be nil.
func Verify(path string, key, old *Key, unit int) error {
	b, err := ReadFile(path)
	if err != nil {
		return err
	}
	if _, _, err = Unwrap(b, key, old, unit); err != nil {
		return fmt.Errorf("header file %s: %w", path, err)
	}
	return nil
}

// openFile opens the header file at path.
func openFile(path string, readOnly bool) (Place, error) {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("header file: %w", err)
	}
	return &slots{file: headerFile{f}}, nil
}
