package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/internal/durable"
)

// copyOf is a writable file with what an image has.
func (f *files) copyOf(ctx context.Context, name, making string, size int64) (made *os.File, err error) {
	image, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	info, err := image.Stat()
	if err != nil {
		return nil, err
	}
	if size == 0 {
		size = info.Size()
	}
	if info.Size() > size {
		return nil, fmt.Errorf("the snapshot has %d bytes, and the volume %d: make the volume as large first", info.Size(), size)
	}
	if made, err = f.begin(making, int(image.Fd())); err != nil {
		return nil, err
	}
	err = share(ctx, made, int(image.Fd()), info.Size(), nil, held())
	if err == nil && size > info.Size() {
		err = made.Truncate(size)
	}
	if err == nil {
		err = made.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(made.Name()), made.Close())
	}
	return made, nil
}

// Clone implements Images.
func (f *files) Clone(ctx context.Context, name, path string) (Copy, error) {
	if !durable.Absent(path) {
		return nil, fmt.Errorf("found %s, expected a path where nothing is", path)
	}
	sum := sha256.Sum256([]byte(path))
	making := ofClone + hex.EncodeToString(sum[:8])
	made, err := f.copyOf(ctx, name, making, 0)
	if err != nil {
		return nil, err
	}
	return &clone{files: f, made: made, path: path, note: f.at("." + making + placeSuffix)}, nil
}

// clone has two names until it is settled: one that says that it is not in use yet, and, with
// a note that says where, its own.
type clone struct {
	*files
	made       *os.File
	path, note string
}

// Place implements Copy.
func (c *clone) Place() error {
	if err := durable.Replace(c.note, []byte(c.path)); err != nil { // before the name that it tells of
		return err
	}
	if err := os.Link(c.made.Name(), c.path); err != nil {
		if errors.Is(err, unix.EXDEV) {
			err = fmt.Errorf("%w: expected a path in the file system of %s", err, c.files.path)
		}
		return err
	}
	if err := durable.SyncDir(filepath.Dir(c.path)); err != nil {
		return err
	}
	return unix.Flock(int(c.made.Fd()), unix.LOCK_UN) // for the volume, which locks it
}

// Undo implements Copy.
func (c *clone) Undo() error {
	var err error
	if sameFile(c.path, c.made.Name()) {
		err = errors.Join(os.Remove(c.path), durable.SyncDir(filepath.Dir(c.path)))
	}
	return errors.Join(err, c.Settle())
}

// Settle implements Copy.
func (c *clone) Settle() error {
	err := os.Remove(c.made.Name())
	if gone := os.Remove(c.note); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return errors.Join(err, c.made.Close(), durable.SyncDir(c.dir))
}

// Restore implements Images.
func (f *files) Restore(ctx context.Context, name string, size int64) (Copy, error) {
	made, err := f.copyOf(ctx, name, ofRestore, size)
	if err != nil {
		return nil, err
	}
	r := &restoration{files: f, made: made}
	if err := r.ownAs(f.fd); err != nil {
		return nil, errors.Join(err, r.Settle())
	}
	return r, nil
}

// restoration is a file that changes places with the store's.
type restoration struct {
	*files
	made *os.File
}

// ownAs gives it the owner and rights of the store's file.
func (r *restoration) ownAs(fd int) error {
	var was unix.Stat_t
	if err := unix.Fstat(fd, &was); err != nil {
		return err
	}
	now, err := r.made.Stat()
	if err != nil {
		return err
	}
	if s := now.Sys().(*syscall.Stat_t); s.Uid != was.Uid || s.Gid != was.Gid {
		if err := r.made.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return errors.Join(r.made.Chmod(os.FileMode(was.Mode&0o777)), r.made.Sync())
}

// Place implements Copy.
func (r *restoration) Place() error {
	if err := unix.Flock(int(r.made.Fd()), unix.LOCK_UN); err != nil { // for the volume, which locks it
		return err
	}
	return r.swap()
}

// Undo implements Copy.
func (r *restoration) Undo() error { return r.swap() }

func (r *restoration) swap() error {
	if err := rename(r.made.Name(), r.path, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	return errors.Join(durable.SyncDir(r.dir), durable.SyncDir(filepath.Dir(r.path)))
}

// Settle implements Copy.
func (r *restoration) Settle() error {
	return errors.Join(os.Remove(r.made.Name()), r.made.Close(), durable.SyncDir(r.dir))
}
