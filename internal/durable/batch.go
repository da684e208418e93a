package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// few is how many files of one file system are made stable one by one. More are made so by
// one sync of the whole file system, which may have data of others to write.
const few = 4

// Batch makes stable together what a start makes for many volumes: the number of syncs
// depends on file systems and directories then, not on volumes. A nil Batch makes stable at
// once. One goroutine uses a Batch.
type Batch struct {
	systems map[uint64][]unsettled // by st_dev; of many files that one sync makes stable, the first
	marks   []Mark
}

// unsettled is a file that is not stable yet.
type unsettled struct{ *os.File }

// Made makes a new file and its name stable. The caller may do with the descriptor what he
// likes, now and before Flush. A file system without a journal writes no inode with the
// name: a power cut would leave a name of nothing, which repair removes.
func (b *Batch) Made(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if b != nil && len(b.systems[st.Dev]) > few && syncsAll(fd) {
		return nil
	}
	// Not a duplicate, which would keep the lock of a file that the caller closes and opens
	// again.
	own, err := os.Open(path)
	if err != nil {
		return err
	}
	u := unsettled{own}
	if b == nil {
		return errors.Join(settle([]unsettled{u}), u.Close())
	}
	if b.systems == nil {
		b.systems = map[uint64][]unsettled{}
	}
	b.systems[st.Dev] = append(b.systems[st.Dev], u)
	return nil
}

// Mark makes a mark when what was Made is stable.
func (b *Batch) Mark(m Mark) error {
	if b == nil {
		return m.Make()
	}
	b.marks = append(b.marks, m)
	return nil
}

// Flush makes all of it stable, the files before the marks. The Batch is empty then, also
// after an error.
func (b *Batch) Flush() error {
	if b == nil {
		return nil
	}
	var errs []error
	for _, files := range b.systems {
		errs = append(errs, settle(files))
		for _, u := range files {
			errs = append(errs, u.Close())
		}
	}
	marks := b.marks
	b.systems, b.marks = nil, nil
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.MakeMarks(marks)
}

// settle makes files of one file system stable, and all others if they are many.
func settle(files []unsettled) error {
	if len(files) > few && syncsAll(int(files[0].Fd())) {
		return syncSystem(files[0].File)
	}
	for _, u := range files {
		if err := u.Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", u.Name(), err)
		}
		if err := SyncDir(filepath.Dir(u.Name())); err != nil {
			return fmt.Errorf("sync directory: %w", err)
		}
	}
	return nil
}

// syncsAll reports whether a sync of the whole file system makes its files stable. FUSE does
// not tell its server of one (fuse_sync_fs of Linux, but for virtiofs).
func syncsAll(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type != unix.FUSE_SUPER_MAGIC
}

// syncSystem makes all stable that is on the file system of f.
func syncSystem(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.Syncfs(int(fd)) }); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("sync the file system of %s: %w", f.Name(), failed)
	}
	return nil
}

// Contents are of a small file.
type Contents struct {
	Path string
	Data []byte
}

// Replace is the function Replace of several files, of which a crash may leave any with
// its old contents.
func (b *Batch) Replace(files []Contents) error {
	byDir := map[string]map[string][]byte{}
	var dirs []string
	for _, f := range files {
		if err := short(f.Path, int64(len(f.Data))); err != nil { // else Read would refuse it
			return err
		}
		dir := filepath.Dir(f.Path)
		if byDir[dir] == nil {
			byDir[dir] = map[string][]byte{}
			dirs = append(dirs, dir)
		}
		byDir[dir][filepath.Base(f.Path)] = f.Data
	}
	for _, dir := range dirs {
		err := within(dir, func(d openDirectory) error { return replace(d, byDir[dir], b != nil && syncsAll(int(d.Fd()))) })
		if err != nil {
			return err
		}
	}
	return nil
}

// MakeMarks is Make of several marks.
func (b *Batch) MakeMarks(marks []Mark) error {
	var files []Contents
	for _, m := range marks {
		if m == "" || m.There() {
			continue
		}
		if dir := filepath.Dir(string(m)); len(files) == 0 || dir != filepath.Dir(files[len(files)-1].Path) {
			if err := MakeDir(dir); err != nil {
				return err
			}
		}
		files = append(files, Contents{Path: string(m)})
	}
	return b.Replace(files)
}

// replace replaces files by name. Only with together many of them are made stable by a sync
// of the whole file system.
func replace(d directory, files map[string][]byte, together bool) error {
	var half []string
	for name, data := range files {
		if err := d.write(name+Half, data); err != nil {
			for _, written := range half { // they take space that others lack
				err = errors.Join(err, d.unlink(written))
			}
			return err
		}
		half = append(half, name+Half)
	}
	if together && len(half) > few {
		if err := d.syncAll(); err != nil {
			return err
		}
		half = nil
	}
	for _, name := range slices.Sorted(slices.Values(half)) {
		if err := d.sync(name); err != nil {
			return err
		}
	}
	for name := range files {
		if err := d.rename(name+Half, name); err != nil {
			return err
		}
	}
	return d.syncNames()
}
