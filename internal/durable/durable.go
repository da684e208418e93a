// Package durable replaces small files so that a crash or a loss of power at any
// point leaves the old contents or the new ones, and the new ones once Replace
// has returned.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// disk is what the order of steps is made of. A name that was renamed and data
// that were written may or may not survive a loss of power until the directory,
// or the file, has been synced.
type disk interface {
	// write makes a file, or empties one that there is, and writes data.
	write(path string, data []byte) error
	// sync makes a file's data stable.
	sync(path string) error
	rename(from, to string) error
	// mkdir makes a directory in one that there is.
	mkdir(path string) error
	// syncDir makes the names in a directory stable.
	syncDir(path string) error
}

// Replace makes data the contents of the file at path. Calls for one path must
// not overlap. What a crash leaves under the name path.new is not looked at and
// overwritten by the next Replace.
func Replace(path string, data []byte) error { return replace(files{}, path, data) }

func replace(d disk, path string, data []byte) error {
	next := path + ".new"
	if err := d.write(next, data); err != nil {
		return err
	}
	if err := d.sync(next); err != nil {
		return err
	}
	if err := d.rename(next, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// MakeDir makes a directory for its owner only, if it is missing, with those
// above it that are missing, and their names stable. So is the name of a directory
// that is there already, where its parent may be read: who made it may have been
// killed before that.
func MakeDir(path string) error { return makeDir(files{}, path) }

func makeDir(d disk, path string) error {
	above := filepath.Dir(path)
	err := d.mkdir(path)
	if errors.Is(err, os.ErrNotExist) && above != path {
		if err = makeDir(d, above); err == nil {
			err = d.mkdir(path)
		}
	}
	if errors.Is(err, os.ErrExist) {
		if err = d.syncDir(above); errors.Is(err, os.ErrPermission) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	return d.syncDir(above)
}

// Remove removes the file at path, if there is one, and makes that stable.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return files{}.syncDir(filepath.Dir(path))
}

// files is the disk of the operating system.
type files struct{}

func (files) write(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

func (files) mkdir(path string) error { return os.Mkdir(path, 0o700) }

func (files) rename(from, to string) error { return os.Rename(from, to) }

func (files) sync(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (files) syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
