// Package durable replaces small files so that a crash or a loss of power at any
// point leaves the old contents or the new ones, and the new ones once Replace
// has returned.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// directory is what the order of steps is made of. A name that was renamed and data
// that were written may or may not survive a loss of power until the directory, or
// the file, has been synced.
type directory interface {
	// write makes a file with data, in place of whatever has the name.
	write(name string, data []byte) error
	// sync makes a file's data stable.
	sync(name string) error
	// syncAll makes the data of all files stable.
	syncAll() error
	rename(from, to string) error
	unlink(name string) error
	// syncNames makes the names in the directory stable.
	syncNames() error
}

// Half is the end of the names of files that are being written.
const Half = ".new"

// Replace makes data, at most 64 MiB, the contents of the file at path. Calls for one
// path must not overlap. What a crash leaves under the name path.new is not looked at and
// replaced by the next Replace.
//
// Symbolic links may lead to the directory, which is opened once. In it neither name
// is followed or written through: what somebody has put there, a link or a pipe, is
// replaced and stays as it is elsewhere.
func Replace(path string, data []byte) error {
	return (*Batch)(nil).Replace([]Contents{{path, data}})
}

// tree makes directories.
type tree interface {
	// mkdir makes a directory in one that there is.
	mkdir(path string) error
	// syncDir makes the names in a directory stable.
	syncDir(path string) error
}

// MakeDir makes a directory for its owner only, if it is missing, with those
// above it that are missing, and their names stable. So is the name of a directory
// that is there already, where its parent may be read: who made it may have been
// killed before that. This process makes a name stable but once.
func MakeDir(path string) error {
	if was, ok := made.Load(path); ok {
		if is, err := os.Stat(path); err == nil && os.SameFile(is, was.(fs.FileInfo)) {
			return nil
		}
	}
	if err := makeDir(system{}, path); err != nil {
		return err
	}
	if is, err := os.Stat(path); err == nil {
		made.Store(path, is)
	}
	return nil
}

// made are directories whose names are stable, fs.FileInfo by path.
var made sync.Map

func makeDir(t tree, path string) error {
	above := filepath.Dir(path)
	err := t.mkdir(path)
	if errors.Is(err, os.ErrNotExist) && above != path {
		if err = makeDir(t, above); err == nil {
			err = t.mkdir(path)
		}
	}
	if errors.Is(err, os.ErrExist) {
		if err = t.syncDir(above); errors.Is(err, os.ErrPermission) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	return t.syncDir(above)
}

// Remove removes the file at path, if there is one, and makes that stable.
func Remove(path string) error {
	err := within(filepath.Dir(path), func(d openDirectory) error {
		if err := d.unlink(filepath.Base(path)); err != nil {
			return err
		}
		return d.syncNames()
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// SyncDir makes the names in a directory stable, if there is one.
func SyncDir(path string) error {
	err := system{}.syncDir(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// system is the tree of the operating system.
type system struct{}

func (system) mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (system) syncDir(path string) error { return within(path, openDirectory.syncNames) }

// openDirectory is a directory that is open, so that nobody can put another one in its
// place between two steps.
type openDirectory struct{ *os.File }

func within(path string, do func(openDirectory) error) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(do(openDirectory{f}), f.Close())
}

func (d openDirectory) write(name string, data []byte) error {
	f, err := d.create(name)
	if errors.Is(err, os.ErrExist) {
		if err = d.unlink(name); err == nil {
			f, err = d.create(name)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.unlink(name)) // half of it is nobody's, and takes space that others lack
	}
	return nil
}

// create makes a file that nothing has had the name of: O_EXCL follows no link. Root
// makes it for the owner of the directory, whose server has to read it.
func (d openDirectory) create(name string) (*os.File, error) {
	f, err := d.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil || os.Geteuid() != 0 {
		return f, err
	}
	var st unix.Stat_t
	if unix.Fstat(int(d.Fd()), &st) == nil && st.Uid != 0 {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // a server of NFS may not let it; then it is whose that makes it
	}
	return f, nil
}

func (d openDirectory) open(name string, flags int) (*os.File, error) {
	fd, err := d.descriptor(name, flags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Name(), name)), nil
}

func (d openDirectory) descriptor(name string, flags int) (fd int, err error) {
	for {
		fd, err = unix.Openat(int(d.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &fs.PathError{Op: "open", Path: filepath.Join(d.Name(), name), Err: err}
		}
	}
}

func (d openDirectory) rename(from, to string) error {
	if err := unix.Renameat(int(d.Fd()), from, int(d.Fd()), to); err != nil {
		return &os.LinkError{Op: "rename", Old: filepath.Join(d.Name(), from), New: filepath.Join(d.Name(), to), Err: err}
	}
	return nil
}

func (d openDirectory) unlink(name string) error {
	if err := unix.Unlinkat(int(d.Fd()), name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(d.Name(), name), Err: err}
	}
	return nil
}

func (d openDirectory) sync(name string) error {
	f, err := d.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d openDirectory) syncAll() error { return syncSystem(d.File) }

func (d openDirectory) syncNames() error { return d.Sync() }
