package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"

	"golang.org/x/sys/unix"

	"lunar/internal/initiator"
)

const mib = 1 << 20

// target has the volumes of the server that sends, of which LUN 0 is dense and LUN 1 half
// holes.
const target = "iqn.2026-11.example:disks"

// hole is how long the holes of a volume are, and what is between them.
const hole = 8 * mib

// makeImage writes a file of random bytes, every second part of which is a hole if holes is
// set.
func makeImage(path string, size int64, holes bool) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	random, part := rand.NewChaCha8([32]byte{1}), make([]byte, hole)
	for off := int64(0); off < size; off += hole {
		if holes && off/hole%2 == 1 {
			continue
		}
		n := min(hole, size-off)
		if _, err := io.ReadFull(random, part[:n]); err != nil {
			return err
		}
		if _, err := f.WriteAt(part[:n], off); err != nil {
			return err
		}
	}
	return errors.Join(f.Truncate(size), f.Sync())
}

// alter writes 4 KiB at random places of a volume, by its server.
func alter(ctx context.Context, portal string, lun int, size int64, places int) error {
	c, err := initiator.Dial(ctx, portal, initiator.Options{Target: target})
	if err != nil {
		return err
	}
	defer c.Close()
	data := make([]byte, 4096)
	for written := 0; written < places; {
		for i := 0; i < len(data); i += 8 {
			binary.LittleEndian.PutUint64(data[i:], rand.Uint64())
		}
		write := make([]byte, 16)
		write[0], write[13] = 0x8a, 4096/512
		binary.BigEndian.PutUint64(write[2:], uint64(rand.Int64N(size/4096)*8))
		r, err := c.Command(write, uint64(lun), data, 0)
		if err != nil {
			return err
		}
		if r.Status == 0 { // else a unit attention of a new session
			written++
		}
	}
	return nil
}

// cold has the kernel drop what it has of a file, when all of it is on its medium. Files in
// memory it keeps.
func cold(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// stable returns when a file is on its medium.
func stable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// equal compares two files.
func equal(a, b string) error {
	x, err := os.Open(a)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return err
	}
	defer y.Close()
	p, q := make([]byte, mib), make([]byte, mib)
	for off := int64(0); ; off += mib {
		n, errX := io.ReadFull(x, p)
		m, errY := io.ReadFull(y, q)
		if n != m || !bytes.Equal(p[:n], q[:m]) {
			return fmt.Errorf("%s differs from %s in the MiB at %d", b, a, off)
		}
		if errX != nil || errY != nil {
			if done := func(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }; done(errX) && done(errY) {
				return nil
			}
			return errors.Join(errX, errY)
		}
	}
}

// gone removes files that may be there.
func gone(paths ...string) (err error) {
	for _, path := range paths {
		if e := os.Remove(path); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
