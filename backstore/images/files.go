package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/durable"
)

// Suffix follows the path of a file in the name of the directory that its images are in. They
// are files named as they are; their moment is the time of their last change. A name that
// begins with a dot is of something that is being made.
const Suffix = ".snapshots"

const (
	makingSuffix = ".making" // of a file that has no name yet
	placeSuffix  = ".place"  // of a note that says where it is going to be
	ofImage      = "image-"  // begins the name of what becomes an image
	ofClone      = "clone-"  // of what becomes a clone, by its path
	ofRestore    = "restore"
)

// files are the images of a file.
type files struct {
	fd   int    // of the file, open; -1: it is opened when it is needed
	path string // of it, without links
	dir  string
}

// Of are the images of the file at path, which is open as fd for as long as they are used.
// Nothing is looked at yet but where it lies. Without one (-1) it is opened for each image, and
// restored with its first alone (Pair).
func Of(path string, fd int) (Images, error) {
	f, err := filesOf(path, fd)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func filesOf(path string, fd int) (*files, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return &files{fd: fd, path: real, dir: real + Suffix}, nil
}

func (f *files) at(name string) string     { return filepath.Join(f.dir, name) }
func (f *files) making(name string) string { return f.at("." + name + makingSuffix) }

// List implements Images.
func (f *files) List() ([]Image, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !ValidName(e.Name()) {
			continue // it was removed meanwhile, or is none
		}
		all = append(all, Image{Name: e.Name(), At: info.ModTime(), Size: info.Size(), Path: f.at(e.Name()), Key: keyOf(f.at(e.Name()))})
	}
	slices.SortFunc(all, func(a, b Image) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return all, nil
}

// Space implements Images.
func (f *files) Space(i Image) (Space, error) { return SpaceOf(i.Path) }

// IsImage reports whether the file at path is an image, which nobody may write to.
func IsImage(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !ValidName(filepath.Base(real)) || !strings.HasSuffix(filepath.Dir(real), Suffix) {
		return false
	}
	info, err := os.Stat(real)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o222 == 0
}

// open opens an image for who shares its blocks.
func (f *files) open(name string) (*os.File, error) {
	if !ValidName(name) {
		return nil, fmt.Errorf("found %q, expected %s", name, WantName)
	}
	image, err := os.OpenFile(f.at(name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	return image, err
}

// begin makes the file of something that has no name yet, and locks it for as long as it is
// being made. What a server that was killed has left of it is replaced.
func (f *files) begin(name string, src int) (*os.File, error) {
	if err := durable.MakeDir(f.dir); err != nil {
		return nil, err
	}
	path := f.making(name)
	if err := removeUnlocked(path); err != nil {
		return nil, err
	}
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(made.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrUsed), made.Close())
	}
	likeSource(made, src)
	return made, nil
}

// removeUnlocked removes a file that nobody has locked, if there is one.
func removeUnlocked(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return fmt.Errorf("%s: %w", path, ErrUsed)
	}
	return os.Remove(path)
}

// Remove implements Images.
func (f *files) Remove(name string) error {
	image, err := f.open(name)
	if err != nil {
		return err
	}
	if err := image.Close(); err != nil {
		return err
	}
	return errors.Join(removeUnlocked(f.at(name)), durable.SyncDir(f.dir))
}

// Begin implements Images.
func (f *files) Begin(name string) (Draft, error) {
	image, err := f.open(name)
	if err == nil {
		return nil, errors.Join(ErrExists, image.Close())
	}
	if !errors.Is(err, ErrNone) {
		return nil, err
	}
	d := &draft{files: f, name: name}
	if err := d.open(); err != nil {
		return nil, err
	}
	made, err := f.begin(ofImage+name, d.fd)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.made = made
	size, err := unix.Seek(d.fd, 0, unix.SEEK_END)
	if err == nil {
		n := min(size, live().least)
		err = shareRange(made, d.fd, 0, n, n == size) // whether it can
	}
	if err != nil {
		return nil, errors.Join(err, d.Discard())
	}
	return d, nil
}

// draft is an image of a file.
type draft struct {
	*files
	name string
	made *os.File // nil: it was kept or discarded
	own  *os.File // the store's, opened for this; nil: somebody else has it open
}

// open opens the store's file, unless it is.
func (d *draft) open() error {
	if d.fd >= 0 {
		return nil
	}
	own, err := os.OpenFile(d.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	of := *d.files
	of.fd = int(own.Fd())
	d.files, d.own = &of, own
	return nil
}

func (d *draft) close() error {
	if d.own == nil {
		return nil
	}
	return d.own.Close()
}

// Draw implements Draft.
func (d *draft) Draw(ctx context.Context, parts []Range) error { return d.share(ctx, parts, live()) }

// Take implements Draft.
func (d *draft) Take(ctx context.Context, parts []Range, key string) error {
	if err := setKey(d.made.Name(), key); err != nil {
		return err
	}
	return d.share(ctx, parts, held())
}

func (d *draft) share(ctx context.Context, parts []Range, p *pace) error {
	size, err := unix.Seek(d.fd, 0, unix.SEEK_END)
	if err != nil {
		return err
	}
	return share(ctx, d.made, d.fd, size, parts, p)
}

// Keep implements Draft.
func (d *draft) Keep(at time.Time) error {
	made := d.made
	err := made.Chmod(0o400)
	if err == nil {
		err = os.Chtimes(made.Name(), at, at)
	}
	if err == nil {
		err = made.Sync()
	}
	if err == nil {
		err = rename(made.Name(), d.at(d.name), unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return err
	}
	d.made = nil
	return errors.Join(durable.SyncDir(d.dir), made.Close(), d.close())
}

// Discard implements Draft.
func (d *draft) Discard() error {
	if d.made == nil {
		return nil
	}
	made := d.made
	d.made = nil
	return errors.Join(os.Remove(made.Name()), made.Close(), d.close())
}

func rename(from, to string, flags uint) error {
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func sameFile(a, b string) bool {
	one, err := os.Lstat(a)
	if err != nil {
		return false
	}
	other, err := os.Lstat(b)
	return err == nil && os.SameFile(one, other)
}
