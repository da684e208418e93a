package backstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"lunar/internal/durable"

	"golang.org/x/sys/unix"
)

// FileConfig says how to open a file that holds a volume.
type FileConfig struct {
	Path      string
	Size      int64        // bytes; 0 takes that of the file, which must exist
	BlockSize int          // of the logical unit, in bytes; 0 is 512. Size must be a multiple
	Direct    bool         // O_DIRECT: past the page cache
	ReadOnly  bool         // never written, and never created or grown
	Sync      bool         // every change is on stable media before it is acknowledged
	Intents   Intents      // of writes with Atomic
	Logger    *slog.Logger // nil is slog.Default
	// Before hears of the store as it was found, before opening changes anything of it;
	// its error ends the opening. May be nil.
	Before func(Watched) error
}

// OpenFile opens a regular file as a Store. With a Size, a file that is missing
// is created with mode 0600 and one that is smaller is grown, both sparsely; one
// that is larger is an error. The file is locked with flock(2), exclusively
// unless ReadOnly, so that no second daemon serves it. Its directory must exist.
//
// A file that is deleted while open goes on working until Close. One that is
// truncated fails with ErrTruncated from the first read beyond its end; a write
// there before that extends it again, with zeroes in between.
func OpenFile(c FileConfig) (Store, error) {
	v, err := openFile(c)
	if err != nil {
		return nil, fmt.Errorf("file store %s: %w", c.Path, err)
	}
	return v, nil
}

func openFile(c FileConfig) (*volume, error) {
	if err := checkSize(c.Size, blockSize(c.BlockSize)); err != nil {
		return nil, err
	}
	fd, created, err := openOrCreate(c)
	if err != nil {
		return nil, err
	}
	v := newVolume(fd, c.Path, c.Sync, c.Logger)
	v.block = blockSize(c.BlockSize)
	err = v.setUpFile(c, created)
	if err == nil {
		err = v.openIntents(c.Intents)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return v, nil
}

func newVolume(fd int, path string, sync bool, log *slog.Logger) *volume {
	if log == nil {
		log = slog.Default()
	}
	return &volume{fd: fd, path: path, sync: sync, log: log}
}

func blockSize(configured int) int64 {
	if configured == 0 {
		return sector
	}
	return int64(configured)
}

func checkSize(size, block int64) error {
	switch {
	case block < sector || block&(block-1) != 0:
		return fmt.Errorf("block size %d: expected a power of two of at least %d", block, sector)
	case size < 0:
		return fmt.Errorf("size %d: expected a positive number of bytes", size)
	case size%block != 0:
		return fmt.Errorf("size %d is %d bytes more than a multiple of the block size %d", size, size%block, block)
	}
	return nil
}

// openOrCreate opens without waiting for whatever a special file waits for.
func openOrCreate(c FileConfig) (fd int, created bool, err error) {
	flags := access(c.ReadOnly) | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err = openRetry(c.Path, flags)
	if errors.Is(err, fs.ErrNotExist) && c.Size > 0 && !c.ReadOnly {
		fd, err = create(c.Path, c.Intents.Batch)
		return fd, err == nil, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return -1, false, fmt.Errorf("%w (it is created only with a size and without read-only)", err)
	}
	return fd, false, err
}

// create makes an empty file that survives a power cut.
func create(path string, b *durable.Batch) (int, error) {
	fd, err := openRetry(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("create: %w", err)
	}
	if err := b.Made(fd, path); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// setUpFile checks, locks and sizes the open file and finds out what it can do.
func (v *volume) setUpFile(c FileConfig, created bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(v.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("not a regular file (a block device takes a block store)")
	}
	if err := v.lock(c.ReadOnly); err != nil {
		return err
	}
	if err := unix.Fstat(v.fd, &st); err != nil { // now nobody else changes the size
		return err
	}
	v.identity = identify(v.fd, &st)
	v.opened = stampOfFile(v.identity, &st)
	v.local = isLocal(v.fd)
	if c.Before != nil {
		if err := c.Before(v); err != nil {
			return err
		}
	}
	if err := v.fit(c, st.Size, created); err != nil {
		return err
	}
	if !created && v.unsettled(c, &st) {
		if err := c.Intents.Batch.Made(v.fd, c.Path); err != nil {
			return err
		}
	}
	return v.probeFile(c, &st)
}

// emptyTo is how many bytes a file may have that nobody has written to, with a header.
const emptyTo = 1 << 20

// unsettled reports whether a start may have made the file that was killed before it was
// stable: a mark says that it is. Where the directory cannot be read, somebody else has made
// the file.
func (v *volume) unsettled(c FileConfig, st *unix.Stat_t) bool {
	return c.Intents.Batch != nil && !c.ReadOnly && c.Size > 0 && st.Blocks*sector <= emptyTo &&
		c.Intents.Marks != "" && !c.Intents.Mark(v.identity).There() && unix.Access(filepath.Dir(c.Path), unix.R_OK) == nil
}

func (v *volume) lock(readOnly bool) error {
	how := unix.LOCK_EX
	if readOnly {
		how = unix.LOCK_SH
	}
	err := unix.Flock(v.fd, how|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return fmt.Errorf("in use: another process holds a lock on it: %w", err)
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return nil
}

// fit makes the file as long as configured, or the volume as long as the file.
func (v *volume) fit(c FileConfig, found int64, created bool) error {
	want := c.Size
	switch {
	case want == 0 && found == 0:
		return errors.New("the file is empty and no size is given")
	case want == 0:
		want = found
	case found > want:
		return fmt.Errorf("the file has %d bytes, the configured size is %d: give the size of the file, or have it cut if its end is not needed (--allow-shrink of tgtd serve and apply)", found, want)
	case found < want && c.ReadOnly:
		return fmt.Errorf("the file has %d bytes, the configured size is %d: a read-only file is not grown", found, want)
	case found < want:
		if err := v.grow(found, want, created && c.Intents.Batch != nil); err != nil {
			return err
		}
	}
	v.info.Store(&Info{Size: want})
	return checkSize(want, blockSize(c.BlockSize))
}
