package writers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lunar/scripts/evidence/generations"
)

// direct passes the page cache by: what is read comes from the target, and what is written
// is there when the call returns.
const direct = unix.O_DIRECT | unix.O_SYNC | unix.O_CLOEXEC

// place is where blocks are.
type place interface {
	write(n int, data []byte) error // acknowledged when it returns
	read(n int, data []byte) error
}

// disk has blocks one after the other.
type disk struct{ file *os.File }

func openDisk(path string, flags int) (disk, error) {
	f, err := os.OpenFile(path, flags|direct, 0)
	return disk{f}, err
}

func (d disk) write(n int, data []byte) error {
	_, err := d.file.WriteAt(data, int64(n)*generations.BlockBytes)
	return err
}

func (d disk) read(n int, data []byte) error {
	_, err := d.file.ReadAt(data, int64(n)*generations.BlockBytes)
	return err
}

// directory has each block in a file, which is replaced by one of the same name, so that
// each write is one of the file system's journal too.
type directory string

// Name is that of a block's file.
func Name(n int) string { return fmt.Sprintf("block%d", n) }

func (d directory) write(n int, data []byte) error {
	name := filepath.Join(string(d), Name(n))
	if err := whole(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, func(f *os.File) error {
		_, err := f.WriteAt(data, 0)
		return err
	}); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	in, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(in.Sync(), in.Close())
}

func (d directory) read(n int, data []byte) error {
	return whole(filepath.Join(string(d), Name(n)), os.O_RDONLY, func(f *os.File) error {
		_, err := f.ReadAt(data, 0)
		return err
	})
}

func whole(name string, flags int, do func(*os.File) error) error {
	f, err := os.OpenFile(name, flags|direct, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(do(f), f.Close())
}

// buffer is one that the kernel reads from and writes to without a copy.
func buffer() ([]byte, error) {
	return unix.Mmap(-1, 0, generations.BlockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANONYMOUS|unix.MAP_PRIVATE)
}
