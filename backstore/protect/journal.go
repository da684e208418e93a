package protect

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// journal is the log of dirty regions in the sidecar file.
type journal struct {
	fd      int
	version uint32
	bits    [logSize]byte
	page    [logSize]byte // as it is stored
	damaged []int         // sectors that were, when the log was opened
}

// openJournal opens the log in the sidecar file, which has its size already. A
// file without a header is a new one.
func openJournal(path string, s shape) (*journal, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	j := &journal{fd: fd, version: s.version}
	if err := j.load(path, s); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return j, nil
}

func (j *journal) load(path string, s shape) error {
	found, want := make([]byte, headerSize), s.header()
	if _, err := unix.Pread(j.fd, found, 0); err != nil {
		return fmt.Errorf("read the header of %s: %w", path, err)
	}
	switch {
	case bytes.Equal(found, s.of(unsummed).header()):
		j.version = unsummed
	case bytes.Equal(found, make([]byte, headerSize)):
		if err := j.put(want, 0); err != nil {
			return fmt.Errorf("write the header of %s: %w", path, err)
		}
	case !bytes.Equal(found, want):
		return fmt.Errorf("%s: %s", path, mismatch(found, s))
	}
	if err := j.read(); err != nil {
		return fmt.Errorf("read the log of %s: %w", path, err)
	}
	return nil
}

// upgrade has a log of before, which says that no region is dirty, get checksums: it is
// all zeroes with them, too.
func (j *journal) upgrade(s shape) error {
	if err := j.put(s.header(), 0); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	j.version = s.version
	return nil
}

// put writes and makes it stable.
func (j *journal) put(b []byte, off int64) error {
	if n, err := unix.Pwrite(j.fd, b, off); err != nil || n != len(b) {
		return fmt.Errorf("wrote %d of %d bytes: %w", n, len(b), err)
	}
	return unix.Fdatasync(j.fd)
}

// has reports whether a region was dirty when the log was opened.
func (j *journal) has(region int) bool { return j.bits[region/8]>>(region%8)&1 != 0 }

// write makes the log stable with the regions for which set is true.
func (j *journal) write(set func(region int) bool) error {
	clear(j.bits[:])
	for i := range roomOf(j.version) {
		if set(i) {
			j.bits[i/8] |= 1 << (i % 8)
		}
	}
	j.encode()
	if err := j.put(j.page[:], logOffset); err != nil {
		return fmt.Errorf("log of protection information: %w", err)
	}
	return nil
}

func (j *journal) close() error { return unix.Close(j.fd) }

// wipe zeroes what is behind the tuples in the last page of a sidecar file.
func (j *journal) wipe(s shape) error {
	rest := make([]byte, s.fileSize()-s.end())
	n, err := unix.Pread(j.fd, rest, s.end())
	if err != nil || bytes.Equal(rest[:n], make([]byte, n)) {
		return err
	}
	clear(rest)
	return j.put(rest, s.end())
}
