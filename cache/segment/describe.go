package segment

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Description is what can be told of a segment without attaching it.
type Description struct {
	Path       string
	InUse      bool // a process has it now; then what is dirty is a snapshot
	Clean      bool // the last process ended in order
	Identity   string
	CreatedBy  string // build
	UsedBy     string // build of the last process
	Process    uint32 // number of the last process
	Created    time.Time
	Generation uint64
	Size       int64
	Geometry   Geometry
	Ranges     int   // dirty blocks
	Dirty      int64 // bytes

	Refused *Refused // why nobody can attach it, nil if it is sound
}

// Describe reads a segment, also one that is in use. A missing file is
// fs.ErrNotExist; one that is not sound is described by its Refused.
func Describe(path string) (Description, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Description{}, fmt.Errorf("cache segment: %w", err)
	}
	defer file.Close()
	d := Description{Path: path}
	mem, err := mapWhole(file, toLook)
	if errors.As(err, &d.Refused) {
		d.Refused.Path = path
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer unmap(mem)
	d.InUse = inUse(file)
	d.read(wordsOf(mem), int64(len(mem)))
	return d, nil
}

// inUse asks by taking the lock for a moment; Attach's Wait makes up for it.
func inUse(file *os.File) bool {
	if unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
		return true
	}
	return unix.Flock(int(file.Fd()), unix.LOCK_UN) != nil
}

// attempts bounds how often a segment in use is read again, because a record
// that changes while it is read looks damaged.
const attempts = 16

func (d *Description) read(w words, size int64) {
	c, refused := inspect(w, size)
	for i := 1; d.InUse && refused != nil && refused.Reason == Damaged && i < attempts; i++ {
		c, refused = inspect(w, size)
	}
	d.Clean = c.clean()
	d.Identity, d.CreatedBy, d.UsedBy = c.header.identity, c.header.build, c.state.build
	d.Process, d.Generation = c.state.process, c.state.generation
	d.Size, d.Geometry = size, c.header.geometry
	if c.header.created != 0 {
		d.Created = time.Unix(0, c.header.created)
	}
	d.Ranges, d.Dirty = len(c.dirty), c.dirtyBytes()
	if refused != nil {
		refused.Path = d.Path
		d.Refused = refused
	}
}

// Attachable returns nil if a process with these options could attach the
// segment, once nobody uses it; else the *Refused that Attach would return.
// Checksums of areas are not part of it.
func (d Description) Attachable(o Options) error {
	c := contents{header: header{identity: d.Identity, build: d.CreatedBy, geometry: d.Geometry}, state: state{build: d.UsedBy}}
	if d.Refused != nil {
		r := *d.Refused
		return r.between(c, o)
	}
	refused := c.admit(o.Identity, o.Geometry)
	if refused == nil || refused.Reason == Changed && o.Replace && d.Dirty == 0 {
		return nil
	}
	refused.Dirty = d.Dirty
	return at(d.Path, refused.between(c, o))
}
