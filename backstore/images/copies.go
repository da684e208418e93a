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
	"strings"

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
func (f *files) Clone(ctx context.Context, name, path string, with ...string) (Copy, error) {
	for _, place := range append([]string{path}, with...) {
		if !durable.Absent(place) {
			return nil, fmt.Errorf("found %s, expected a path where nothing is", place)
		}
	}
	if strings.HasSuffix(filepath.Dir(path), Suffix) {
		return nil, fmt.Errorf("found %s, expected a path that is not among snapshots", path)
	}
	sum := sha256.Sum256([]byte(path))
	making := ofClone + hex.EncodeToString(sum[:8])
	made, err := f.copyOf(ctx, name, making, 0)
	if err != nil {
		return nil, err
	}
	return &clone{files: f, made: made, path: path, with: with, note: f.at("." + making + placeSuffix)}, nil
}

// clone has two names until it is settled: one that says that it is not in use yet, and, with
// a note that says where, its own.
type clone struct {
	*files
	made       *os.File
	path, note string
	with       []string
}

// betweenPlaces is between the paths of a note.
const betweenPlaces = "\x00"

// Place implements Copy.
func (c *clone) Place() error {
	if err := durable.Replace(c.note, []byte(strings.Join(append([]string{c.path}, c.with...), betweenPlaces))); err != nil { // before the name that it tells of
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
		for _, place := range append(c.with, c.path) {
			err = errors.Join(err, durable.Remove(place))
		}
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
