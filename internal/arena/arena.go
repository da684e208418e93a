package arena

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"lunar/internal/bytesize"
)

// Options say what memory an arena is of.
type Options struct {
	Bytes    int64    // rounded up to whole pages
	Node     int      // the kernel's number of the node to take it from; -1 for any
	Huge     Huge     //
	Lock     bool     // lock in memory
	Path     string   // a file that does not exist, on tmpfs or hugetlbfs; "" for anonymous memory
	Threads  int      // that touch the memory; at least 1
	Progress Progress // of touching; may be nil
}

// Arena is memory of one node. The memory is zero when Open returns it.
type Arena struct {
	mem   []byte
	path  string
	pages Pages
	bound Bound
	note  string
}

// hugetlbMagic is the type of hugetlbfs as statfs names it.
const hugetlbMagic = 0x958458f6

// Open maps, places and touches memory. It fails, with numbers, if it does not
// fit or if HugeRequire cannot be met; a node that cannot be had is not an error
// (see Bound). A file that it made is removed again if it fails.
func Open(o Options) (*Arena, error) {
	if o.Bytes <= 0 {
		return nil, fmt.Errorf("arena of %d bytes: expected at least 1", o.Bytes)
	}
	a, err := mapping(o)
	if err != nil {
		return nil, err
	}
	if err := a.prepare(o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func mapping(o Options) (*Arena, error) {
	if o.Path != "" {
		return mapFile(o)
	}
	limits, err := ReadLimits("")
	if err != nil {
		return nil, err
	}
	huge := limits.Check(Demand{Bytes: o.Bytes, Huge: true})
	if o.Huge == HugeRequire && huge != nil {
		return nil, huge
	}
	if o.Huge != HugeOff && huge == nil {
		a, err := mapAnonymous(roundUp(o.Bytes, limits.HugePage), unix.MAP_HUGETLB)
		if err == nil || o.Huge == HugeRequire {
			return a, err
		}
	}
	if err := limits.Check(Demand{Bytes: o.Bytes, Lock: o.Lock}); err != nil {
		return nil, err
	}
	return mapAnonymous(roundUp(o.Bytes, int64(os.Getpagesize())), 0)
}

func mapAnonymous(size int64, flags int) (*Arena, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|flags)
	if err != nil {
		return nil, fmt.Errorf("arena: map %s: %w", bytesize.Text(size), err)
	}
	Undumped(mem)
	a := &Arena{mem: mem}
	if flags&unix.MAP_HUGETLB != 0 {
		a.pages = HugePages
	}
	return a, nil
}

// mapFile creates the file with all its space, so that no page can be missing
// later.
func mapFile(o Options) (*Arena, error) {
	dir := filepath.Dir(o.Path)
	page, reserved, err := PageSize(dir)
	if err != nil {
		return nil, err
	}
	if o.Huge == HugeRequire && !reserved {
		return nil, fmt.Errorf("arena %s in huge pages: its directory is not on hugetlbfs; expected one, such as a mount of type hugetlbfs on /dev/hugepages", o.Path)
	}
	size := roundUp(o.Bytes, page)
	if err := CheckFile(dir, size, o.Lock); err != nil {
		return nil, err
	}
	return createFile(o.Path, size, reserved)
}

func createFile(path string, size int64, reserved bool) (*Arena, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("arena: %w", err)
	}
	defer f.Close()
	mem, err := mapNew(f, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("arena %s: map %s: %w", path, bytesize.Text(size), err), os.Remove(path))
	}
	a := &Arena{mem: mem, path: path}
	if reserved {
		a.pages = HugePages
	}
	return a, nil
}

func mapNew(f *os.File, size int64) ([]byte, error) {
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		Undumped(mem)
	}
	return mem, err
}

// PageSize returns the size of the pages that files in dir are made of, and
// whether they are reserved huge pages (hugetlbfs).
func PageSize(dir string) (size int64, reserved bool, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false, fmt.Errorf("arena: file system of %s: %w", dir, err)
	}
	if uint32(fs.Type) == hugetlbMagic {
		return fs.Bsize, true, nil
	}
	return int64(os.Getpagesize()), false, nil
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// prepare places and touches the mapped memory.
func (a *Arena) prepare(o Options) (err error) {
	if o.Node >= 0 {
		if a.bound, err = Bind(a.mem, o.Node); err != nil {
			return err
		}
	}
	if a.pages == SmallPages && o.Huge == HugeAuto {
		a.pages, a.note = Advise(a.mem, o.Path != "")
	}
	if err := Populate(a.mem, o.Threads, o.Progress); err != nil {
		return err
	}
	if !o.Lock {
		return nil
	}
	if err := unix.Mlock(a.mem); err != nil {
		return fmt.Errorf("arena: lock %s in memory: %w", bytesize.Text(int64(len(a.mem))), err)
	}
	return nil
}

// Bytes returns the memory, page aligned. It must not be used after Close.
func (a *Arena) Bytes() []byte { return a.mem }

// Pages tells which pages the arena got, and why not huge ones where that is
// known.
func (a *Arena) Pages() (Pages, string) { return a.pages, a.note }

// Bound tells whether the memory was asked of its node with success.
func (a *Arena) Bound() Bound { return a.bound }

// Close unmaps the memory and removes its file.
func (a *Arena) Close() error {
	var errs []error
	if a.mem != nil {
		errs = append(errs, unix.Munmap(a.mem))
		a.mem = nil
	}
	if a.path != "" {
		errs = append(errs, os.Remove(a.path))
		a.path = ""
	}
	return errors.Join(errs...)
}
