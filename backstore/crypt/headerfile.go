package crypt

import (
	"crypto/rand"
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
	master := freshMaster()
	defer clear(master[:])
	if err := durable.Replace(path, newHeader(key, unit).contents(master)); err != nil {
		return fmt.Errorf("header file: %w", err)
	}
	return nil
}

// Verify reports what is wrong with a header file, or with the keys for it; nothing is
// changed. Old may be nil.
func Verify(path string, key, old *Key, unit int) error {
	f, err := openRead(path)
	if err != nil {
		return fmt.Errorf("header file: %w", err)
	}
	defer f.Close()
	_, master, err := openHeader(headerFile{f}, key, old, unit, true)
	if err != nil {
		return fmt.Errorf("header file %s: %w", path, err)
	}
	clear(master[:])
	return nil
}

// load opens the header file at path.
func load(path string, key, old *Key, unit int, readOnly bool) (*header, *[MasterSize]byte, error) {
	flags := os.O_RDWR
	if readOnly {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flags|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("header file: %w", err)
	}
	h, master, err := openHeader(headerFile{f}, key, old, unit, readOnly)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("header file %s: %w", path, err), f.Close())
	}
	return h, master, nil
}

func freshMaster() *[MasterSize]byte {
	m := new([MasterSize]byte)
	_, _ = rand.Read(m[:]) // never fails
	return m
}
