package images

import (
	"cmp"
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
	r, err := f.restore(ctx, name, size, keep, key)
	if err == nil && keep != "" {
		err = r.note(0)
	}
	if r == nil {
		return nil, err
	}
	if err != nil {
		return nil, errors.Join(err, r.Settle())
	}
	return r, nil
}

// restore is Restore without a note: a server that is killed leaves a file that goes.
func (f *files) restore(ctx context.Context, name string, size int64, keep, key string) (*restoration, error) {
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
	if err = r.ownAsStore(); err != nil {
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

// ownAsStore gives it the owner and rights of the store's file.
func (r *restoration) ownAsStore() error {
	was, err := r.now()
	if err != nil {
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
	if err := r.ready(); err != nil {
		return err
	}
	return r.swap()
}

// ready unlocks it for the volume, which locks it.
func (r *restoration) ready() error {
	r.at = time.Now()
	return unix.Flock(int(r.made.Fd()), unix.LOCK_UN)
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
	if err := r.exchange(); err != nil {
		return err
	}
	r.placed = !r.placed
	return r.syncPlaces()
}

// exchange has the store's file and the one that has no name yet change places.
func (f *files) exchange() error {
	return rename(f.making(ofRestore), f.path, unix.RENAME_EXCHANGE)
}

func (f *files) syncPlaces() error {
	return errors.Join(durable.SyncDir(f.dir), durable.SyncDir(filepath.Dir(f.path)))
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

// restoring is what is noted of a rollback: once the store's file is the one that was made, the
// other one has what the store held.
type restoring struct {
	made      uint64 // inode of the file that was made
	keep, key string // of the image that the other one becomes; empty name: it goes
	first     uint64 // inode of the one that was made for the file that this one follows; 0: it follows none
}

// noKeep stands for no name in a note.
const noKeep = "-"

// note tells a later process what to do with the file that has no name yet.
func (r *restoration) note(first uint64) error {
	made, err := inodeOf(int(r.made.Fd()))
	if err != nil {
		return err
	}
	return durable.Replace(r.restorationNote(), fmt.Appendf(nil, "%d %s %q %d\n", made, cmp.Or(r.keep, noKeep), r.key, first))
}

// noted is what note has told; nil: nothing.
func (f *files) noted() (*restoring, error) {
	text, err := durable.Read(f.restorationNote())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &restoring{}
	if got, err := fmt.Sscanf(string(text), "%d %s %q %d", &n.made, &n.keep, &n.key, &n.first); got < 3 { // versions without pairs had three
		return nil, fmt.Errorf("%s: found %q, expected what a rollback was doing: %w", f.restorationNote(), text, err)
	}
	return n, nil
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// now is the store's file.
func (f *files) now() (st unix.Stat_t, err error) {
	if f.fd >= 0 {
		return st, unix.Fstat(f.fd, &st)
	}
	return st, unix.Stat(f.path, &st)
}

// tidyRestoration ends what a process has left that was killed.
func (f *files) tidyRestoration() error {
	n, err := f.noted()
	if err != nil {
		return err
	}
	now, err := f.now()
	if err != nil {
		return err
	}
	was, gone := os.Lstat(f.making(ofRestore))
	if gone == nil && n != nil && n.made == now.Ino && n.keep != noKeep {
		return f.keepAs(n.keep, n.key, was.ModTime())
	}
	return errors.Join(removeUnlocked(f.making(ofRestore)), durable.Remove(f.restorationNote()))
}
