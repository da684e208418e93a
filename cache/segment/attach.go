package segment

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/bytesize"
)

// Outcome says what Attach found.
type Outcome uint8

// The outcomes.
const (
	Fresh   Outcome = iota // there was no segment, or only one to be replaced: everything is zero
	Warm                   // the last process ended in order: areas are as it left them, and checked
	Crashed                // it did not: the dirty ranges hold, areas are what was stored last
)

var outcomeNames = [...]string{"fresh", "warm", "crashed"}

// String names the outcome for the log and metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Options are what a process wants of its segment.
type Options struct {
	Identity string // of the server; a segment of another one is refused. At most 128 bytes
	Build    string // version of the program, for messages only
	Geometry Geometry

	// Replace allows to replace a segment of this server with other geometry
	// if nothing in it is dirty; otherwise it is refused as Changed.
	Replace bool
	// Wait is how long to wait for a process that still has the segment. Waits is called again
	// and again meanwhile, with how long that has taken; nil: nobody is told.
	Wait  time.Duration
	Waits func(why error, since time.Duration)

	// Rehearse is to see what would come of it: areas can only be read, there is no
	// Journal, and Detach must follow.
	Rehearse bool

	Huge     arena.Huge     // require: only on hugetlbfs; auto: huge pages of tmpfs, if the kernel gives them
	Threads  int            // that touch the memory
	Progress arena.Progress // of touching it; may be nil
}

// Segment is an attached segment. It has the file's lock until it is closed.
type Segment struct {
	*Journal
	Outcome    Outcome
	Dirty      []Range // what was dirty at Attach, by volume and block; no sub-block twice
	Generation uint64  // counts the processes that attached it, from 1
	Previous   string  // build of the process before, empty if there was none
	Replaced   string  // how the geometry of a segment that was replaced differed
	Unplaced   string  // why memory is not where it was asked for; empty if it is
	Pages      arena.Pages

	file     *os.File
	path     string
	mem      []byte
	page     int64 // bytes of a page of the file
	header   header
	state    state
	geometry Geometry // as asked for
}

// Attach opens the segment at path, or makes one if there is none, and locks it
// against other processes. The directory must exist. A segment that cannot be
// attached is refused with a *Refused and left as it is. A rehearsal of what would make
// a new segment returns nil.
func Attach(path string, o Options) (*Segment, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(pause) {
		s, err := attachOnce(path, o)
		var refused *Refused
		if !errors.As(err, &refused) || refused.Reason != Busy || time.Since(began) > o.Wait {
			return s, err
		}
		if o.Waits != nil {
			o.Waits(err, time.Since(began))
		}
	}
}

// pause is between two attempts to lock a segment.
const pause = 10 * time.Millisecond

func (o Options) check() error {
	if o.Identity == "" || len(o.Identity) > maxText {
		return fmt.Errorf("cache segment of server %q: expected a name of 1 to %d bytes", o.Identity, maxText)
	}
	return o.Geometry.check()
}

func attachOnce(path string, o Options) (*Segment, error) {
	file, err := openLocked(path)
	if errors.Is(err, fs.ErrNotExist) && o.Rehearse {
		return nil, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return create(path, o)
	}
	if err != nil {
		return nil, err
	}
	s, err := attachFile(file, path, o)
	var refused *Refused
	if errors.As(err, &refused) {
		refused.Path = path
		switch anew := o.Replace && refused.Reason == Changed && refused.Dirty == 0; {
		case anew && o.Rehearse:
			return nil, file.Close()
		case anew:
			return replace(file, path, o, refused)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// replace makes a new segment under the lock of the old one.
func replace(old *os.File, path string, o Options, refused *Refused) (*Segment, error) {
	if err := os.Remove(path); err != nil {
		return nil, errors.Join(fmt.Errorf("cache segment: %w", err), old.Close())
	}
	s, err := create(path, o)
	if err == nil {
		s.Replaced, s.Previous = refused.Found+", now "+refused.Expected, refused.WrittenBy
	}
	return s, errors.Join(err, old.Close())
}

// attachFile does not close the file if it fails.
func attachFile(file *os.File, path string, o Options) (*Segment, error) {
	how := toShare
	if o.Rehearse {
		how = toLook
	}
	mem, err := mapWhole(file, how)
	if err != nil {
		return nil, err
	}
	s := &Segment{file: file, path: path, mem: mem, geometry: o.Geometry}
	if err := s.choosePages(o); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	if err := s.take(o); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	return s, nil
}

func (s *Segment) take(o Options) error {
	w := s.words()
	c, refused := inspect(w, int64(len(s.mem)))
	if refused == nil {
		refused = c.admit(o.Identity, o.Geometry)
	}
	if refused == nil && c.clean() {
		refused = s.verify(c)
	}
	if refused != nil {
		return refused.between(c, o)
	}
	s.header, s.Previous = c.header, c.state.build
	s.Outcome, s.Dirty = Crashed, c.dirty
	if c.clean() {
		s.Outcome = Warm
	}
	if o.Rehearse {
		return nil
	}
	if err := s.place(o); err != nil {
		return err
	}
	s.Journal, s.state = c.adopt(w, o.Build, uint32(os.Getpid()))
	s.Generation = s.state.generation
	return nil
}

// verify compares areas with the checksums of the shutdown.
func (s *Segment) verify(c contents) *Refused {
	for i, crc := range s.sums(c.header) {
		if crc != c.state.sums[i] {
			r := refuse(Damaged, fmt.Sprintf("checksum %#x of area %q", c.state.sums[i], c.header.geometry.Areas[i].Name), "%#x", crc)
			r.Dirty = c.dirtyBytes()
			return r
		}
	}
	return nil
}

// sums computes the checksums of the areas that have one, the others' are 0.
func (s *Segment) sums(h header) (sums [maxAreas]uint32) {
	var group sync.WaitGroup
	for i, a := range s.geometry.Areas {
		if a.Checksum {
			group.Go(func() {
				sums[i] = max(crc32.Checksum(s.mem[h.offsets[i]:h.offsets[i]+a.Size], castagnoli), 1)
			})
		}
	}
	group.Wait()
	return sums
}

// choosePages finds out which pages the file is made of, or asks for huge ones.
func (s *Segment) choosePages(o Options) error {
	page, reserved, err := arena.PageSize(filepath.Dir(s.path))
	if err != nil {
		return fmt.Errorf("cache segment %s: %w", s.path, err)
	}
	s.page = page
	switch {
	case reserved:
		s.Pages = arena.HugePages
	case o.Huge == arena.HugeRequire:
		return fmt.Errorf("cache segment %s in huge pages: its directory is not on hugetlbfs; expected one, such as a mount of type hugetlbfs on /dev/hugepages", s.path)
	case o.Huge == arena.HugeAuto && !o.Rehearse:
		s.Pages, _ = arena.Advise(s.mem, true)
	}
	return nil
}

// place asks for each area's node and makes all memory exist.
func (s *Segment) place(o Options) error {
	for i, a := range o.Geometry.Areas {
		if a.Node < 0 {
			continue
		}
		first := s.header.offsets[i]
		bound, err := arena.Bind(s.mem[first:roundUp(first+a.Size, s.page)], a.Node)
		if err != nil {
			return fmt.Errorf("cache segment %s: area %q: %w", s.path, a.Name, err)
		}
		if !bound.OK {
			s.Unplaced = bound.Reason
		}
	}
	if err := arena.Populate(s.mem, o.Threads, o.Progress); err != nil {
		return fmt.Errorf("cache segment %s: %w", s.path, err)
	}
	return nil
}

// create makes a segment without a name and names it when it is whole, so that
// a process that is killed here leaves nothing.
func create(path string, o Options) (*Segment, error) {
	file, page, err := unnamed(path)
	if err != nil {
		return nil, err
	}
	s, err := layFile(file, path, page, o)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := name(file, path); err != nil {
		return nil, errors.Join(err, s.Detach())
	}
	return s, nil
}

// collapseTime is how long a new segment may take to get huge pages: where memory is
// in pieces, the kernel has to move others' first.
const collapseTime = 5 * time.Second

// large is the alignment of areas that are at least as large, so that they can
// have transparent huge pages.
const large = 2 << 20

func layFile(file *os.File, path string, page int64, o Options) (*Segment, error) {
	h, err := newHeader(o, page)
	if err != nil {
		return nil, err
	}
	if err := fits(path, h.total); err != nil {
		return nil, err
	}
	if err := file.Truncate(h.total); err != nil {
		return nil, fmt.Errorf("cache segment %s of %s: %w", path, bytesize.Text(h.total), err)
	}
	mem, err := mapWhole(file, toShare)
	if err != nil {
		return nil, err
	}
	s := &Segment{file: file, path: path, mem: mem, header: h, geometry: o.Geometry}
	if err := s.choosePages(o); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	if err := s.place(o); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	if o.Huge == arena.HugeAuto && s.Pages != arena.HugePages { // now that each area is on its node; who attaches has what there is
		s.Pages = max(s.Pages, arena.Collapse(s.mem, o.Threads, collapseTime))
	}
	s.Journal, s.state = lay(s.words(), h, uint32(os.Getpid()))
	s.Generation = s.state.generation
	return s, nil
}

func newHeader(o Options, page int64) (header, error) {
	var salt [8]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return header{}, fmt.Errorf("cache segment: %w", err)
	}
	h := header{salt: binary.NativeEndian.Uint64(salt[:]), created: time.Now().UnixNano(), identity: o.Identity, build: o.Build, geometry: o.Geometry}
	h.offsets, h.total = o.Geometry.arrange(page, max(page, large))
	return h, nil
}

// Area returns the memory of an area, nil if there is none of that name. It
// must not be used after the segment is closed.
func (s *Segment) Area(name string) []byte {
	for i, a := range s.header.geometry.Areas {
		if a.Name == name {
			first := s.header.offsets[i]
			return s.mem[first : first+a.Size : first+a.Size]
		}
	}
	return nil
}

// FD returns the descriptor with the segment's lock, for whoever has to make it
// last as long as what the kernel does with the segment's memory. Close and
// Detach give the lock up, whoever else has the open file.
func (s *Segment) FD() int { return int(s.file.Fd()) }

// Found reports whether the file is still at the path, where the next process looks.
func (s *Segment) Found() bool {
	var own, named unix.Stat_t
	return unix.Fstat(s.FD(), &own) == nil && unix.Lstat(s.path, &named) == nil && own.Ino == named.Ino && own.Dev == named.Dev
}

// Path is where the file was when it was attached.
func (s *Segment) Path() string { return s.path }

// Size returns the bytes of the whole segment.
func (s *Segment) Size() int64 { return int64(len(s.mem)) }

// Close ends the use of the segment in order: the next process finds it Warm.
// What is dirty stays dirty. Nobody may use areas or journal any more.
func (s *Segment) Close() error {
	s.state.status = statusClean
	s.state.sums = s.sums(s.header)
	s.state.write(s.words())
	return s.Detach()
}

// Detach ends the use of the segment as a crash would: the next process finds
// it Crashed. It is for a process that cannot vouch for the areas.
func (s *Segment) Detach() error {
	mem := s.mem
	s.mem = nil
	return errors.Join(unmap(mem), unix.Flock(s.FD(), unix.LOCK_UN), s.file.Close())
}

// Remove removes the file and ends its use. It refuses while something is dirty.
func (s *Segment) Remove() error {
	for slot := range s.slots {
		if s.Journal.Dirty(slot) != 0 {
			return fmt.Errorf("cache segment %s: slot %d still holds data that is not in the backing store", s.path, slot)
		}
	}
	return errors.Join(os.Remove(s.path), s.Detach())
}
