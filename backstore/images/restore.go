package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/durable"
)

// Restore implements Images.
func (f *files) Restore(ctx context.Context, name string, size int64, keep, key string) (Copy, error) {
	if keep != "" {
		if image, err := f.open(keep); !errors.Is(err, ErrNone) {
			if err == nil {
				err = errors.Join(ErrExists, image.Close())
			}
			return nil, err
		}
	}
	if err := f.tidyRestoration(); err != nil { // which may have what the store held before
		return nil, err
	}
	made, err := f.copyOf(ctx, name, ofRestore, size)
	if err != nil {
		return nil, err
	}
	r := &restoration{files: f, made: made, keep: keep, key: key}
	if err = r.ownAs(f.fd); err == nil && keep != "" {
		err = f.noteRestoration(made, keep, key)
	}
	if err != nil {
		return nil, errors.Join(err, r.Settle())
	}
	return r, nil
}

// restoration is a file that changes places with the store's, which becomes an image then: what
// the store held is that file, and nothing of it has to be shared while nobody writes.
type restoration struct {
	*files
	made   *os.File
	keep   string    // name of that image; empty: there is to be none
	key    string    // of it
	at     time.Time // of which it is
	placed bool      // they have changed places
	undone bool      // they were to change back
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
	r.at = time.Now()
	return r.swap()
}

// Undo implements Copy.
func (r *restoration) Undo() error {
	if !r.placed {
		return nil
	}
	r.undone = true
	return r.swap()
}

func (r *restoration) swap() error {
	if err := rename(r.made.Name(), r.path, unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	r.placed = !r.placed
	return errors.Join(durable.SyncDir(r.dir), durable.SyncDir(filepath.Dir(r.path)))
}

// Settle implements Copy.
func (r *restoration) Settle() error {
	switch {
	case r.placed && r.undone:
		return errors.Join(fmt.Errorf("what the volume held is in %s: rename it to %s while the server is stopped", r.made.Name(), r.path), r.made.Close())
	case r.placed && r.keep != "":
		return errors.Join(r.keepAs(r.keep, r.key, r.at), r.made.Close())
	}
	return errors.Join(os.Remove(r.made.Name()), r.made.Close(), durable.Remove(r.restorationNote()), durable.SyncDir(r.dir))
}

// keepAs makes an image of what the store held before its file changed places. After an error
// the next Restore or Tidy does.
func (f *files) keepAs(name, key string, at time.Time) error {
	was := f.making(ofRestore)
	err := setKey(was, key)
	if err == nil {
		err = os.Chmod(was, 0o400)
	}
	if err == nil {
		err = os.Chtimes(was, at, at)
	}
	if err == nil {
		err = rename(was, f.at(name), unix.RENAME_NOREPLACE)
	}
	if err == nil {
		err = durable.SyncDir(f.dir)
	}
	if err != nil {
		return fmt.Errorf("what the volume held before is in %s, and no snapshot %s yet: %w", was, name, err)
	}
	return durable.Remove(f.restorationNote())
}

func (f *files) restorationNote() string { return f.at("." + ofRestore + placeSuffix) }

// noteRestoration tells a later process what to do with the file that has no name yet: once the
// store's file is the one that was made, the other one has what the store held.
func (f *files) noteRestoration(made *os.File, keep, key string) error {
	inode, err := inodeOf(int(made.Fd()))
	if err != nil {
		return err
	}
	return durable.Replace(f.restorationNote(), fmt.Appendf(nil, "%d %s %q\n", inode, keep, key))
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// tidyRestoration ends what a process has left that was killed.
func (f *files) tidyRestoration() error {
	var made uint64
	var keep, key string
	text, err := durable.Read(f.restorationNote())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s %q", &made, &keep, &key)
	}
	now, asked := inodeOf(f.fd)
	if asked != nil {
		return asked
	}
	was, there := os.Lstat(f.making(ofRestore))
	if there == nil && err == nil && made == now && ValidName(keep) {
		return f.keepAs(keep, key, was.ModTime())
	}
	return errors.Join(removeUnlocked(f.making(ofRestore)), durable.Remove(f.restorationNote()))
}
