package rbd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/backstore/images"
)

// Restore implements images.Images: a clone of the snapshot changes names with the image. To
// have the cluster roll the image back would take it time by the number of objects, while nobody
// may read, and what was broken off were neither the one nor the other.
func (s *snapshots) Restore(_ context.Context, name string, size int64, keep, key string) (images.Copy, error) {
	r := &restoration{snapshots: s, name: name, size: size, keep: keep, key: key}
	_, err := within(s.Patience, func() (struct{}, error) { return struct{}{}, r.prepare() }, func(struct{}, error) {
		_ = r.Settle() // nobody is left to be told
	})
	if err == nil {
		return r, nil
	}
	if !errors.Is(err, ErrLate) {
		err = errors.Join(err, r.Settle())
	}
	return nil, fmt.Errorf("roll back %s: %w", s.what, err)
}

// restoration is a rollback.
type restoration struct {
	*snapshots
	name string // of the snapshot
	size int64  // bytes that the volume has
	keep string // name of what the image held before; empty: none
	key  string // with which that is enciphered

	part  part   // of the image that was
	takes string // note of the clone
	noted bool   // in the image that was
	made  bool   // the clone is there
	stays bool   // the instance does, without the store
	was   Image  // a second handle of the image, which gets the lock once the store is closed
	next  Image  // the clone, with its lock

	kept, moved, placed bool // the snapshot of before, and both names
}

func (r *restoration) prepare() error {
	err := (*Store)(r.snapshots).use(r.begin)
	if err == nil {
		err = r.openBoth()
	}
	if err == nil {
		err = r.ready()
	}
	return err
}

// begin finds the snapshot, notes what is going to be, and makes the clone.
func (r *restoration) begin(i Image) error {
	if err := r.tidyRollback(i); err != nil {
		return err
	}
	names, err := earlier(i)
	if err == nil && len(names) >= earlierMost {
		err = fmt.Errorf("found snapshots of it in %d images that were in its place before rollbacks, expected no more than %d: delete those of %s", len(names), earlierMost-1, r.Image.beside(names[len(names)-1]))
	}
	var of Snapshot
	if err == nil {
		_, of, err = r.holds(i, r.name)
	}
	switch {
	case err != nil:
		return err
	case of.Size > r.size:
		return fmt.Errorf("the snapshot has %d bytes, and the volume %d: make the volume as large first", of.Size, r.size)
	}
	if _, _, err := r.holds(i, r.keep); r.keep != "" && !errors.Is(err, images.ErrNone) {
		return errors.Join(images.ErrExists, err)
	}
	return r.clone(i)
}

func (r *restoration) clone(i Image) error {
	g, err := i.Geometry()
	if err != nil {
		return err
	}
	fresh := (*Store)(r.snapshots).fresh()
	if err := r.with(fresh.Image, true, func(Image) error { return nil }); !errors.Is(err, unix.ENOENT) {
		return errors.Join(fmt.Errorf("found an image %s, expected a name that nothing has", fresh), err)
	}
	r.part = part{earlier: r.Image.Image + earlierEnding + g.ID, keep: noKeep}
	if r.keep != "" {
		r.part.keep = r.keep
	}
	if err := i.Annotate(rollbackNote, r.part.note(g.ID)); err != nil {
		return err
	}
	r.noted = true
	_, err = r.on(i, r.name, true, func(of Image) error { return of.Clone(r.name, fresh) })
	r.made = err == nil
	return err
}

// openBoth opens the image once more, and the clone, whose lock keeps others away meanwhile.
func (r *restoration) openBoth() (err error) {
	if _, err = r.clients.acquireAt(r.instance.Address()); err != nil {
		return err
	}
	r.stays = true
	if r.was, err = r.instance.Open(r.Image, false); err != nil {
		return err
	}
	if r.next, err = r.instance.Open((*Store)(r.snapshots).fresh(), false); err != nil {
		return err
	}
	return r.next.Acquire()
}

// ready has the clone be what is opened in the image's place.
func (r *restoration) ready() error {
	was, err := r.was.Geometry()
	if err != nil {
		return err
	}
	now, err := r.next.Geometry()
	if err != nil {
		return err
	}
	if was.Object != now.Object || was.StripeUnit != now.StripeUnit {
		return fmt.Errorf("found a clone with objects of %d bytes, striped in units of %d, expected %d and %d", now.Object, now.StripeUnit, was.Object, was.StripeUnit)
	}
	if now.Size != r.size {
		if err := r.next.Resize(r.size); err != nil {
			return err
		}
	}
	names, err := earlier(r.was)
	if err != nil {
		return err
	}
	takes := r.part
	takes.takes = true
	r.takes = takes.note(now.ID)
	return errors.Join(
		noteEarlier(r.next, slices.Insert(names, 0, r.part.earlier)),
		r.next.Annotate(rollbackNote, r.takes),
		r.next.Annotate(cloningNote, ""),
		r.next.Annotate(OwnerNote, r.owned()),
	)
}

// owned is the note of who has an image open.
func (s *snapshots) owned() string { return owned{s.Server, s.instance.Address()}.String() }

// Place implements images.Copy. A cluster that does not answer holds it, as it holds commands:
// a change of names that was given up could still happen.
func (r *restoration) Place() error {
	if err := r.was.Acquire(); err != nil {
		return fmt.Errorf("take the exclusive lock again: %w", err)
	}
	if err := r.was.Annotate(OwnerNote, r.owned()); err != nil { // so that the next start has it at once
		return err
	}
	if r.keep != "" {
		if err := noteKey(r.was, r.keep, r.key); err != nil {
			return err
		}
		if err := r.was.Snap(r.keep); err != nil {
			return err
		}
		r.kept = true
	}
	fresh := (*Store)(r.snapshots).fresh()
	if err := r.instance.Rename(r.Image, r.Image.beside(r.part.earlier)); err != nil {
		return err
	}
	r.moved = true
	if err := r.instance.Rename(fresh, r.Image); err != nil {
		return err
	}
	r.placed = true
	next := r.next
	r.next = nil
	return errors.Join(next.Annotate(OwnerNote, ""), next.Close())
}

// Undo implements images.Copy.
func (r *restoration) Undo() error {
	if r.placed {
		if err := r.with(r.Image.Image, false, r.giveBack); err != nil {
			return err
		}
		r.placed = false
	}
	if r.moved {
		if err := r.instance.Rename(r.Image.beside(r.part.earlier), r.Image); err != nil {
			return err
		}
		r.moved = false
	}
	err := r.remove()
	if err == nil && r.kept {
		err = r.was.Unsnap(r.keep)
	}
	if err == nil { // else the next start has something to do
		err = r.was.Annotate(rollbackNote, "")
	}
	was := r.was
	r.was, r.noted = nil, false
	return errors.Join(err, was.Annotate(OwnerNote, ""), was.Close())
}

// remove removes the clone, which is not in the volume's place.
func (r *restoration) remove() error {
	var err error
	if r.next != nil {
		err = r.next.Close()
	}
	if r.made {
		err = errors.Join(err, r.instance.Remove((*Store)(r.snapshots).fresh()))
	}
	r.next, r.made = nil, false
	return err
}

// giveBack has the clone, which is in the volume's place, give up the name.
func (r *restoration) giveBack(next Image) error {
	s := (*Store)(r.snapshots)
	err := s.lock(next, nil)
	if err == nil {
		err = next.Annotate(rollbackNote, r.takes) // whoever opened it has removed that
	}
	if err == nil {
		err = s.instance.Rename(s.Image, s.fresh())
	}
	return err
}

// Settle implements images.Copy.
func (r *restoration) Settle() error {
	var err error
	if !r.placed && !r.moved {
		err = r.remove()
	}
	if err == nil && r.noted && !r.moved {
		err = (*Store)(r.snapshots).use(func(i Image) error { return i.Annotate(rollbackNote, "") })
	}
	for _, i := range []Image{r.was, r.next} {
		if i != nil {
			err = errors.Join(err, i.Close())
		}
	}
	switch {
	case r.placed && r.keep == "":
		err = errors.Join(err, r.discard(r.part.earlier))
	case r.moved && !r.placed:
		err = errors.Join(err, fmt.Errorf("what the volume held is in image %s, and the next start ends the rollback", r.Image.beside(r.part.earlier)))
	}
	if r.stays {
		err = errors.Join(err, r.clients.release(r.instance, r.Patience))
	}
	return err
}

// tidyRollback removes what a rollback has left that did not come to pass. The image has its
// lock, and its name.
func (s *snapshots) tidyRollback(i Image) error {
	p, _, err := partOf(i)
	if p == nil || err != nil {
		return err
	}
	if p.keep != noKeep {
		if err := i.Unsnap(p.keep); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	fresh := (*Store)(s).fresh()
	err = s.with(fresh.Image, false, func(of Image) error { return (*Store)(s).lock(of, nil) }) // its owner is dead
	if err == nil {
		err = s.instance.Remove(fresh)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove image %s, which a rollback has left: %w", fresh, err)
	}
	return i.Annotate(rollbackNote, "")
}
