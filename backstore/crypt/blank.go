package crypt

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Blank reports whether a file holds nothing but zeroes, so that nothing is lost when
// it is enciphered from now on. Holes are not read. Of a device false is the answer:
// to read all of one takes too long.
func Blank(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	return blankUpTo(f, info.Size())
}

// blankUpTo looks at what a file has of data.
func blankUpTo(f *os.File, size int64) (bool, error) {
	buffer := make([]byte, 1<<20)
	for at := int64(0); at < size; {
		data, err := f.Seek(at, unix.SEEK_DATA)
		switch {
		case errors.Is(err, unix.ENXIO):
			return true, nil // only holes follow
		case err == nil:
			at = data
		case !errors.Is(err, unix.EINVAL): // a file system that knows no holes
			return false, err
		}
		n, err := f.ReadAt(buffer, at)
		if err != nil && err != io.EOF || n == 0 {
			return n == 0 && err == io.EOF, err
		}
		for _, b := range buffer[:n] {
			if b != 0 {
				return false, nil
			}
		}
		at += int64(n)
	}
	return true, nil
}
