package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrChanged says that a file is not as its reader found it.
var ErrChanged = errors.New("found other contents than were read from it last")

// Rewrite replaces the contents of a file that people keep, from what was read to data,
// and keeps its mode and owner. If it has other contents, or is missing, a link or not to
// be written, it stays as it is and there is an error: ErrChanged, fs.ErrNotExist,
// ErrForeign or fs.ErrPermission. A crash leaves the old file or the new one, and maybe
// the other one beside it as .NAME.new: NAME.new may be somebody's draft.
func Rewrite(path string, was, data []byte) error {
	if err := short(path, int64(len(data))); err != nil {
		return err
	}
	return within(filepath.Dir(path), func(d openDirectory) error { return d.rewrite(filepath.Base(path), was, data) })
}

// LeftoverOf is where a crash of Rewrite leaves the other file.
func LeftoverOf(path string) string {
	return filepath.Join(filepath.Dir(path), besideName(filepath.Base(path)))
}

// Leftover is what a crash of Rewrite has left, fs.ErrNotExist if nothing.
func Leftover(path string) ([]byte, error) { return Read(LeftoverOf(path)) }

// RemoveLeftover removes that. No Rewrite may be under way.
func RemoveLeftover(path string) error { return Remove(LeftoverOf(path)) }

func besideName(name string) string { return "." + name + Half }

func (d openDirectory) rewrite(name string, was, data []byte) error {
	path := filepath.Join(d.Name(), name)
	st, err := d.writable(name)
	if err != nil {
		return foreignKind(path, err)
	}
	if err := d.holds(name, was); err != nil {
		return err
	}
	next := besideName(name)
	if err := d.write(next, data); err != nil {
		return err
	}
	if err := d.likewise(next, &st); err != nil {
		return errors.Join(err, d.unlink(next))
	}
	return d.exchange(name, next, was)
}

// writable is the file's state, unless it is not to be written.
func (d openDirectory) writable(name string) (st unix.Stat_t, err error) {
	f, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return st, err
	}
	defer f.Close()
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return st, err
	}
	const anybody = 0o222
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return st, unix.EISDIR
	case st.Nlink > 1:
		return st, fmt.Errorf("%s: found a file with %d names (hard links), expected one: %w", f.Name(), st.Nlink, ErrForeign)
	case st.Mode&anybody == 0:
		return st, fmt.Errorf("%s: found mode %04o, which nobody may write: %w", f.Name(), st.Mode&0o7777, os.ErrPermission)
	}
	if err := unix.Faccessat(int(d.Fd()), name, unix.W_OK, unix.AT_EACCESS); err != nil {
		return st, fmt.Errorf("%s: it may not be written: %w", f.Name(), err)
	}
	return st, nil
}

// holds reports contents that are not those that were read.
func (d openDirectory) holds(name string, was []byte) error {
	f, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && !bytes.Equal(now, was) {
		err = fmt.Errorf("%s: %w", f.Name(), ErrChanged)
	}
	return err
}

// likewise gives a file mode and owner of another one, and makes it stable.
func (d openDirectory) likewise(name string, as *unix.Stat_t) error {
	f, err := d.open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Uid != as.Uid || st.Gid != as.Gid {
		if err := f.Chown(int(as.Uid), int(as.Gid)); err != nil {
			return fmt.Errorf("its owner could not be kept: %w", err)
		}
	}
	if err := unix.Fchmod(int(f.Fd()), as.Mode&0o7777); err != nil {
		return err
	}
	return f.Sync()
}

// exchange puts the new file in place of the old one, which is looked at once more: what
// somebody else has written meanwhile is put back.
func (d openDirectory) exchange(name, next string, was []byte) error {
	err := unix.Renameat2(int(d.Fd()), next, int(d.Fd()), name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system has no such thing
		if err := d.rename(next, name); err != nil {
			return err
		}
		return d.syncNames()
	}
	if err != nil {
		return errors.Join(&os.LinkError{Op: "rename", Old: filepath.Join(d.Name(), next), New: filepath.Join(d.Name(), name), Err: err}, d.unlink(next))
	}
	if err := d.holds(next, was); err != nil {
		return errors.Join(err, unix.Renameat2(int(d.Fd()), next, int(d.Fd()), name, unix.RENAME_EXCHANGE), d.unlink(next))
	}
	if err := d.unlink(next); err != nil {
		return err
	}
	return d.syncNames()
}
