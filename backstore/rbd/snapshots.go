package rbd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/images"
)

// Images implements images.Source by the snapshots of the cluster.
func (s *Store) Images() (images.Images, error) {
	if s.ReadOnly {
		return nil, fmt.Errorf("%w: it is read-only, and whoever writes to it makes its snapshots", images.ErrUnsupported)
	}
	return (*snapshots)(s), nil
}

// snapshots are those of an image. Places of clones are names of images.
type snapshots Store

// ask calls the image, for as long as the cluster may take to answer.
func (s *snapshots) ask(what string, f func(Image) error) error {
	_, err := within(s.Patience, func() (struct{}, error) { return struct{}{}, (*Store)(s).use(f) }, nil)
	switch {
	case errors.Is(err, unix.ENOENT):
		return images.ErrNone
	case errors.Is(err, unix.EEXIST):
		return images.ErrExists
	case errors.Is(err, unix.EBUSY):
		return images.ErrUsed
	case err != nil:
		return fmt.Errorf("%s of %s: %w", what, s.what, err)
	}
	return nil
}

// use calls f unless the image is closed.
func (s *Store) use(f func(Image) error) error {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return errors.New("it is closed")
	}
	return f(s.image)
}

// List implements images.Images. Clocks of the cluster may be ahead of this one: a moment that
// has not come yet is now.
func (s *snapshots) List() (out []images.Image, err error) {
	var all []holder
	err = s.ask("snapshots", func(i Image) (err error) { all, err = s.holders(i); return err })
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, h := range all {
		for _, one := range h.all {
			if !images.ValidName(one.Name) {
				continue
			}
			if one.At.After(now) {
				one.At = now
			}
			out = append(out, images.Image{Name: one.Name, At: one.At, Size: one.Size, Key: h.keys[one.Name]})
		}
	}
	slices.SortStableFunc(out, func(a, b images.Image) int { return a.At.Compare(b.At) }) // as they were made
	return out, nil
}

// Space implements images.Images: the cluster does not tell without looking at all objects.
func (s *snapshots) Space(images.Image) (images.Space, error) {
	return images.Space{}, images.ErrUnsupported
}

// Remove implements images.Images. An image that was in the volume's place goes with the last
// snapshot that it has, which takes time by the number of its objects.
func (s *snapshots) Remove(name string) error {
	var holder string
	err := s.ask("remove a snapshot", func(i Image) (err error) {
		holder, err = s.on(i, name, false, func(of Image) error { return of.Unsnap(name) })
		return err
	})
	if err == nil && holder != "" {
		err = errors.Join(s.discard(holder), (*Store)(s).use(s.forget))
	}
	return err
}

// Begin implements images.Images.
func (s *snapshots) Begin(name string) (images.Draft, error) {
	if !images.ValidName(name) {
		return nil, fmt.Errorf("found %q, expected %s", name, images.WantName)
	}
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(i images.Image) bool { return i.Name == name }) {
		return nil, images.ErrExists
	}
	return &draft{snapshots: s, name: name}, nil
}

// draft is a snapshot of the cluster, which has its name from the beginning.
type draft struct {
	*snapshots
	name string
	made bool // and not kept
}

// Draw implements images.Draft: there is nothing to do before.
func (d *draft) Draw(context.Context, []images.Range) error { return nil }

// Take implements images.Draft. One that the cluster makes too late is removed.
func (d *draft) Take(ctx context.Context, _ []images.Range, key string) error {
	patience := d.Patience
	if late, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(late))
	}
	_, err := within(patience, func() (struct{}, error) {
		return struct{}{}, (*Store)(d.snapshots).use(func(i Image) error {
			if err := noteKey(i, d.name, key); err != nil {
				return err
			}
			return i.Snap(d.name)
		})
	}, func(_ struct{}, late error) {
		if late == nil {
			_ = d.Remove(d.name) // nobody is left to be told
		}
	})
	if err != nil {
		return fmt.Errorf("snapshot of %s: %w", d.what, err)
	}
	d.made = true
	return nil
}

// Keep implements images.Draft.
func (d *draft) Keep(time.Time) error {
	d.made = false
	return nil
}

// Discard implements images.Draft.
func (d *draft) Discard() error {
	if !d.made {
		return nil
	}
	d.made = false
	return d.Remove(d.name)
}

// cloningNote is the name of the metadata by which an image has which clone of it is not in
// use yet.
const cloningNote = "lunar-cloning"

// Clone implements images.Images.
func (s *snapshots) Clone(_ context.Context, name, path string, _ ...string) (images.Copy, error) {
	to, err := ParseName(path)
	if err != nil {
		return nil, err
	}
	return &clone{snapshots: s, name: name, to: to}, nil
}

// clone is an image that is made of a snapshot.
type clone struct {
	*snapshots
	name string
	to   Name
	made bool
}

// Place implements images.Copy.
func (c *clone) Place() error {
	err := c.ask("clone", func(i Image) error {
		if err := i.Annotate(cloningNote, c.to.String()); err != nil {
			return err
		}
		_, err := c.on(i, c.name, true, func(of Image) error { return of.Clone(c.name, c.to) })
		return err
	})
	if errors.Is(err, images.ErrExists) {
		return fmt.Errorf("found an image %s, expected a name that nothing has", c.to)
	}
	c.made = err == nil
	return err
}

// Undo implements images.Copy.
func (c *clone) Undo() error {
	var err error
	if c.made {
		err = c.instance.Remove(c.to)
	}
	return errors.Join(err, c.Settle())
}

// Settle implements images.Copy.
func (c *clone) Settle() error {
	return c.ask("note", func(i Image) error { return i.Annotate(cloningNote, "") })
}

// Tidy implements images.Images. An image of the noted name may be anybody's, and is left
// alone.
func (s *snapshots) Tidy(serves func(name string) bool) error {
	var left string
	err := errors.Join(s.ask("rollback", s.tidyRollback), s.ask("note", func(i Image) (err error) { left, err = i.Note(cloningNote); return err }), (*Store)(s).use(s.forget))
	if err != nil || left == "" {
		return err
	}
	if err = (&clone{snapshots: s}).Settle(); err == nil && !serves(left) {
		err = fmt.Errorf("a server that was killed was making image %s of a snapshot: remove it if it is there and nobody needs it (rbd rm %s)", left, left)
	}
	return err
}
