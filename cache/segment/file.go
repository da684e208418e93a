package segment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/bytesize"
)

// openLocked opens a segment's file and takes its lock. A missing file is
// fs.ErrNotExist; a file of others, or of another kind, is refused: who can
// write to a segment can read and change what initiators store.
func openLocked(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, at(path, refuse(Unsafe, "a regular file", "a symbolic link"))
	}
	if err != nil {
		return nil, fmt.Errorf("cache segment: %w", err)
	}
	refused := ownFile(file)
	if refused == nil {
		refused = lock(file, path)
	}
	if refused != nil {
		return nil, errors.Join(at(path, refused), file.Close())
	}
	return file, nil
}

func at(path string, r *Refused) *Refused {
	r.Path = path
	return r
}

func ownFile(file *os.File) *Refused {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return refuse(Unsafe, "a file", "%v", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return refuse(Unsafe, "a regular file", "a file of type %#o", st.Mode&unix.S_IFMT)
	case int(st.Uid) != os.Geteuid():
		return refuse(Unsafe, fmt.Sprintf("one of user %d", os.Geteuid()), "a file of user %d", st.Uid)
	case st.Mode&0o077 != 0:
		return refuse(Unsafe, "mode 0600", "mode %#o", st.Mode&0o777)
	}
	return nil
}

// lock takes the file's lock and makes sure that it is still the one at path.
func lock(file *os.File, path string) *Refused {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return refuse(Busy, "no other process that has it", "the lock of another process (%v)", err)
	}
	var own, named unix.Stat_t
	err := errors.Join(unix.Fstat(int(file.Fd()), &own), unix.Lstat(path, &named))
	if err != nil || own.Ino != named.Ino || own.Dev != named.Dev {
		return refuse(Busy, "no other process that changes it", "a file that was replaced meanwhile")
	}
	return nil
}

// unnamed creates a locked file without a name on path's file system, and
// returns the size of its pages.
func unnamed(path string) (file *os.File, page int64, err error) {
	dir := filepath.Dir(path)
	page, _, err = arena.PageSize(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("cache segment %s: %w", path, err)
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("cache segment %s: create a file in %s (expected a directory on tmpfs or hugetlbfs): %w", path, dir, err)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("cache segment %s: lock: %w", path, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), page, nil
}

// name gives an unnamed file its name; it fails as Busy if somebody was faster.
func name(file *os.File, path string) error {
	from := fmt.Sprintf("/proc/self/fd/%d", file.Fd())
	err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.EEXIST) {
		return at(path, refuse(Busy, "no other process that creates it", "a file that was created meanwhile"))
	}
	if err != nil {
		return fmt.Errorf("cache segment %s: name the new file: %w", path, err)
	}
	return nil
}

// fits compares a new segment with what there is.
func fits(path string, size int64) error {
	if err := arena.CheckFile(filepath.Dir(path), size, false); err != nil {
		return fmt.Errorf("cache segment %s: %w", path, err)
	}
	return nil
}

// access is a way to map a file.
type access func(fd, n int) ([]byte, error)

func toLook(fd, n int) ([]byte, error) { return arena.MapFile(fd, n, unix.PROT_READ) }

func toShare(fd, n int) ([]byte, error) { return arena.MapFile(fd, n, unix.PROT_READ|unix.PROT_WRITE) }

// mapWhole maps all of a file that is at least as long as the fixed part of a
// segment.
func mapWhole(file *os.File, how access) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("cache segment: %w", err)
	}
	if info.Size() < headWords*8 {
		return nil, refuse(Foreign, "a cache segment", "a file of %d bytes", info.Size())
	}
	mem, err := how(int(file.Fd()), int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("cache segment %s: map %s: %w", file.Name(), bytesize.Text(info.Size()), err)
	}
	return mem, nil
}

func unmap(mem []byte) error {
	if mem == nil {
		return nil
	}
	return arena.Unmap(mem)
}

// wordsOf is memory that begins at a page as words; an incomplete one at the
// end is left out.
func wordsOf(mem []byte) mapped {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

func (s *Segment) words() mapped { return wordsOf(s.mem) }
