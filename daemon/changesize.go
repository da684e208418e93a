package daemon

import (
	"fmt"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
)

// newSizes finds out which volumes are to have another size: by their size in
// the configuration, or because their file or device has grown.
func (c *change) newSizes() (out resizes) {
	var shrink resizes
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		lu := c.daemon.assembly.Unit(v.Name)
		if lu == nil || c.old.Volume(v.Name) == nil {
			continue
		}
		r := resizing{name: v.Name, unit: lu, from: lu.Store().Info().Size}
		switch size, followed := c.daemon.followedSize(v); {
		case followed && c.daemon.assembly.Still(v) != nil:
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

// lines say what is to be done about sizes that the configuration does not tell.
func (all resizes) lines() (out []string) {
	for _, r := range all {
		if r.outside {
			out = append(out, fmt.Sprintf("%s: %v, was %v: its file or device has grown", conf.Key("volumes", r.name, "size"), conf.Size(r.to), conf.Size(r.from)))
		}
	}
	return out
}

// resize changes the sizes. To undo, it cuts grown volumes again; volumes that were
// cut stay so, and the error says it.
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
	return a.daemon.assembly.ResizeStore(a.daemon.config.Load().Volume(volume), bytes)
}

// Rescan implements server.Source.
func (s *source) Rescan(by server.Asker, volume string) (control.Rescanned, error) {
	return s.changes.rescan(by, volume)
}

// rescan makes a volume as large as its file or device is.
func (a *applier) rescan(by server.Asker, volume string) (control.Rescanned, error) {
	if err := a.lock(by); err != nil {
		return control.Rescanned{}, err
	}
	defer a.changing.Unlock()
	refuse := func(text string) (control.Rescanned, error) {
		return control.Rescanned{}, &control.Refusal{What: "volume " + volume + " was not looked at again", State: true, Reasons: []control.Reason{{Text: text}}}
	}
	v, lu := a.daemon.config.Load().Volume(volume), a.daemon.assembly.Unit(volume)
	if v == nil || lu == nil {
		return refuse("found no volume of that name")
	}
	if err := a.daemon.assembly.Still(v); err != nil {
		return refuse(err.Error())
	}
	bytes, followed := a.daemon.followedSize(v)
	if !followed {
		return refuse("found type " + string(v.Type) + " or a configured size, expected a block device, an image, or a file without size")
	}
	out := control.Rescanned{Before: lu.Store().Info().Size, Now: bytes}
	if err := a.resizeTo(volume, bytes); err != nil {
		return refuse(err.Error())
	}
	a.keepApplied()
	return out, nil
}
