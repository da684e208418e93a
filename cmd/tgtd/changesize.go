package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/conf"
	"lunar/internal/control"
	"lunar/target/scsi"
)

// resizes are the volumes whose size is to change: those that grow come first.
type resizes []resizing

type resizing struct {
	name     string
	unit     *scsi.LogicalUnit
	from, to int64 // bytes
	outside  bool  // the file or device has that size already
}

// newSizes finds out which volumes are to have another size: by their size in
// the configuration, or because their file or device has grown.
func (c *change) newSizes() (out resizes) {
	var shrink resizes
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		lu := c.daemon.assembly.units[v.Name]
		if lu == nil || c.old.Volume(v.Name) == nil {
			continue
		}
		r := resizing{name: v.Name, unit: lu, from: lu.Store().Info().Size}
		switch size, followed := followedSize(v); {
		case followed && c.daemon.assembly.still(v) != nil:
			continue // the size is another one's
		case followed:
			r.to, r.outside = size, true
		case v.Size > 0 && v.Size != c.old.Volume(v.Name).Size:
			r.to = int64(v.Size)
		default:
			continue
		}
		switch {
		case r.to > r.from:
			out = append(out, r)
		case r.to < r.from && !r.outside:
			shrink = append(shrink, r)
		}
	}
	return append(out, shrink...)
}

// still refuses a path that does not lead to the file or device any more that the volume
// has open: it was deleted, replaced, or covered by a file system.
func (a *assembly) still(v *conf.Volume) error {
	if v.Path == "" {
		return nil
	}
	now, err := os.Stat(v.Path)
	if err != nil {
		return fmt.Errorf("%w; the volume goes on with what it has open", err)
	}
	was := a.files[v.Name]
	if was == nil || os.SameFile(was, now) || sameDevice(was, now) {
		return nil
	}
	return fmt.Errorf("%s leads to another file or device than the volume has open, and goes on with", v.Path)
}

// sameDevice reports whether two names are of one device: udev makes them anew.
func sameDevice(a, b fs.FileInfo) bool {
	one, ok1 := a.Sys().(*syscall.Stat_t)
	two, ok2 := b.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && one.Mode&syscall.S_IFMT == syscall.S_IFBLK && two.Mode&syscall.S_IFMT == syscall.S_IFBLK && one.Rdev == two.Rdev
}

// followedSize is the size that the file or device of a volume has, if the
// volume is to be as large as that.
func followedSize(v *conf.Volume) (bytes int64, ok bool) {
	if v.Type != conf.BlockVolume && (v.Type != conf.FileVolume || v.Size > 0) {
		return 0, false
	}
	f, err := os.OpenFile(v.Path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	bytes, err = f.Seek(0, io.SeekEnd)
	return bytes, err == nil && bytes > 0
}

// lines say what is to be done about sizes that the configuration does not tell.
func (all resizes) lines() (out []string) {
	for _, r := range all {
		if r.outside {
			out = append(out, fmt.Sprintf("%s: %v, was %v: its file or device has grown", conf.Key("volumes", r.name, "size"), conf.Size(r.to), conf.Size(r.from)))
		}
	}
	return out
}

// resize changes the sizes. What has grown is cut again if it must be undone;
// what was cut stays so, and the error says it.
func (c *change) resize() error {
	for _, r := range c.sizes {
		if err := c.resizeTo(r.name, r.to); err != nil {
			return err
		}
		c.undo = append(c.undo, func() error {
			if r.to < r.from {
				return fmt.Errorf("volume %s was cut to %d bytes before, and is: apply again", r.name, r.to)
			}
			return c.resizeTo(r.name, r.from)
		})
	}
	c.did = append(c.did, c.sizes.lines()...)
	return nil
}

// resizeTo changes the size of an open volume.
func (a *applier) resizeTo(volume string, bytes int64) error {
	return a.daemon.assembly.resizeStore(a.daemon.config.Load().Volume(volume), bytes)
}

// Rescan implements control.Source.
func (s *source) Rescan(volume string) (control.Rescanned, error) {
	return s.changes.rescan(volume)
}

// rescan makes a volume as large as its file or device is.
func (a *applier) rescan(volume string) (control.Rescanned, error) {
	if err := a.lock(); err != nil {
		return control.Rescanned{}, err
	}
	defer a.changing.Unlock()
	refuse := func(text string) (control.Rescanned, error) {
		return control.Rescanned{}, &control.Refusal{What: "volume " + volume + " was not looked at again", State: true, Reasons: []control.Reason{{Text: text}}}
	}
	v, lu := a.daemon.config.Load().Volume(volume), a.daemon.assembly.units[volume]
	if v == nil || lu == nil {
		return refuse("found no volume of that name")
	}
	if err := a.daemon.assembly.still(v); err != nil {
		return refuse(err.Error())
	}
	bytes, followed := followedSize(v)
	if !followed {
		return refuse("found type " + string(v.Type) + " or a configured size, expected a block device or a file without size")
	}
	out := control.Rescanned{Before: lu.Store().Info().Size, Now: bytes}
	if err := a.resizeTo(volume, bytes); err != nil {
		return refuse(err.Error())
	}
	a.keepApplied()
	return out, nil
}
