package bulk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/internal/pipeline/rftp"
)

// Known has the sums of the blocks of a volume that nobody has written since they were read:
// a move need not read these. Changes, which the volume's Slot has to fill from before the
// first operation on, is in memory; so while it is filled the head of the file says that it is
// in use, and after an end without Settle nothing is known.
//
// The file begins with a head of 4 KiB: magic, size of the volume, whether it is settled,
// Mark, and the SHA-256 of these and of all that follows, which are 32 bytes for each block;
// zeroes: it is not known.
type Known struct {
	f       knownFile
	size    int64
	lost    bool // the file could not be written: nothing is known any more
	Changes *backstore.Changes
}

// knownFile is what a Known needs of its file.
type knownFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Mark tells a volume's file from what it is after anybody has written to it: inode, size,
// times of the last write and change. The zero Mark is of one that cannot be told.
type Mark [4]uint64

// MarkOf is the mark of the file at path.
func MarkOf(path string) (m Mark, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return m, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return Mark{st.Ino, uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())}, nil
}

const (
	knownHead  = 4096
	knownMagic = "lunar bulk digests 2"
	settledAt  = 72
	markAt     = 80
	sealAt     = 128
	knownUsed  = sealAt + sha256.Size
)

// OpenKnown opens the file at path, or makes it, for a volume of size bytes with a mark. What
// it says is forgotten if it was not settled with that.
func OpenKnown(path string, size int64, m Mark) (*Known, error) {
	if err := CheckRoom(size); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	k, err := openKnown(f, size, m)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return k, nil
}

func openKnown(f knownFile, size int64, m Mark) (*Known, error) {
	k := &Known{f: f, size: size, Changes: backstore.NewChanges(size, BlockSize)}
	settled, err := k.settled(m)
	if err != nil {
		return nil, err
	}
	err = k.head(0, Mark{}, Sum{})
	if err == nil && !settled {
		err = k.f.Truncate(knownHead)
	}
	if err == nil {
		err = k.f.Sync()
	}
	return k, err
}

// settled reports whether the file is of this volume, and says what is so.
func (k *Known) settled(m Mark) (bool, error) {
	head := make([]byte, knownHead)
	n, err := k.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if n < knownHead || m == (Mark{}) || binary.BigEndian.Uint64(head[settledAt:]) != 1 {
		return false, nil
	}
	sums, err := k.read()
	if err != nil {
		return false, err
	}
	return bytes.Equal(head[:knownUsed], k.headOf(1, m, sealOf(sums))[:knownUsed]), nil
}

// headOf is the head of the file: settled 1 or 0.
func (k *Known) headOf(settled uint64, m Mark, sums Sum) []byte {
	head := make([]byte, knownHead)
	copy(head, knownMagic)
	binary.BigEndian.PutUint64(head[64:], uint64(k.size))
	binary.BigEndian.PutUint64(head[settledAt:], settled)
	for i, word := range m {
		binary.BigEndian.PutUint64(head[markAt+8*i:], word)
	}
	seal := sha256.Sum256(append(bytes.Clone(head[:sealAt]), sums[:]...))
	copy(head[sealAt:], seal[:])
	return head
}

func (k *Known) head(settled uint64, m Mark, sums Sum) error {
	_, err := k.f.WriteAt(k.headOf(settled, m, sums), 0)
	return err
}

func sealOf(sums []Sum) (s Sum) {
	h := sha256.New()
	for i := range sums {
		h.Write(sums[i][:])
	}
	h.Sum(s[:0])
	return s
}

// read reads all sums.
func (k *Known) read() ([]Sum, error) {
	sums := make([]Sum, Blocks(k.size))
	return sums, readSums(io.NewSectionReader(k.f, knownHead, int64(len(sums))*rftp.SumSize), sums)
}

// Size is that of the volume in bytes.
func (k *Known) Size() int64 { return k.size }

// Sums returns what is known; zero: the block has to be read. Of what is altered from now on
// Changed tells.
func (k *Known) Sums() ([]Sum, error) {
	k.Changed()
	if k.lost {
		return make([]Sum, Blocks(k.size)), nil
	}
	return k.read()
}

// Changed returns the blocks that were altered since it was called last. They are not known
// any more.
func (k *Known) Changed() []int64 {
	parts := k.Changes.Take()
	for i := 0; i < len(parts); {
		n := 1
		for i+n < len(parts) && parts[i+n] == parts[i]+int64(n) {
			n++
		}
		if _, err := k.f.WriteAt(make([]byte, n*rftp.SumSize), knownHead+parts[i]*rftp.SumSize); err != nil {
			k.lost = true
		}
		i += n
	}
	return parts
}

// Learn takes the sums of a volume that has been read. What was altered meanwhile, Changed
// has not told yet, or there is a newer sum of it.
func (k *Known) Learn(sums []Sum) error {
	b := make([]byte, 0, len(sums)*rftp.SumSize)
	for i := range sums {
		b = append(b, sums[i][:]...)
	}
	_, err := k.f.WriteAt(b, knownHead)
	k.lost = err != nil
	return err
}

// Settle closes the file, when nobody can write to the volume any more and all of it is
// stable. What is known then, OpenKnown finds with the same mark.
func (k *Known) Settle(m Mark) error {
	k.Changed()
	if k.lost {
		return k.Close()
	}
	sums, err := k.read()
	if err == nil {
		err = k.f.Sync() // before the head says that it is true
	}
	if err == nil {
		err = k.head(1, m, sealOf(sums))
	}
	if err == nil {
		err = k.f.Sync()
	}
	return errors.Join(err, k.f.Close())
}

// Close closes the file, after which nothing is known.
func (k *Known) Close() error { return k.f.Close() }
