package volumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/backstore"
	"lunar/backstore/images"
	"lunar/conf"
	"lunar/internal/evloop"
)

// Images are the snapshots of an open volume. ErrUnsupported says why it has none.
func (a *Set) Images(v *conf.Volume) (images.Images, error) {
	switch base := a.Health.Base(v.Name).(type) {
	case nil:
		if s := a.SharedOf(v.Name); s != nil && s.Owner() != "" {
			return nil, fmt.Errorf("node %s has it: ask there", s.Owner())
		}
		return nil, errors.New("found no file or device that serves it now")
	case images.Source:
		return base.Images()
	}
	return nil, images.ErrUnsupported
}

// Key tells with which master key a volume is enciphered; empty: with none.
func (v *Volume) Key() string {
	switch {
	case v.Shared != nil:
		return v.Shared.mark()
	case v.Cipher == nil:
		return ""
	}
	return v.Cipher.Mark()
}

// SameKey says why a volume cannot hold what an image has. Both are told by their keys.
func SameKey(image, volume string) error {
	switch {
	case image == volume:
		return nil
	case image == "":
		return errors.New("it was made before the volume was encrypted, and has its data in clear")
	case volume == "":
		return errors.New("it was made while the volume was encrypted, and the volume is not any more")
	}
	return errors.New("the volume has another master key since a cryptographic erase: nothing can be read from it any more")
}

// RollBack has an open volume go on with what place puts at its path, which is enciphered with
// a key, and returns for how long commands were held: while everything that was acknowledged
// gets to the file, and the files change places. Initiators hear that the medium may have changed, and nothing of before is left in the
// cache. After an error the volume is open with what it had, unless the error says that it
// cannot be served.
func (a *Set) RollBack(life context.Context, loop *evloop.Loop, v *conf.Volume, key string, to images.Copy) (pause time.Duration, err error) {
	if shared := a.Open[v.Name].Shared; shared != nil {
		return shared.rollBack(life, loop, key, to)
	}
	r := &reopening{Set: a, open: a.Open[v.Name], from: *v, to: *v, loop: loop}
	r.keepSize()
	if err := r.writeDirty(); err != nil {
		return 0, errors.Join(err, r.restore())
	}
	ctx, cancel := context.WithTimeout(life, reopenWait)
	defer cancel()
	began := time.Now()
	err = r.open.Slot.Exchange(ctx, func(old backstore.Store) (backstore.Store, error) { return r.rollBack(old, key, to) })
	pause = time.Since(began)
	if err != nil && !r.closed {
		err = errors.Join(err, r.restore())
	}
	return pause, err
}

func (r *reopening) rollBack(old backstore.Store, key string, to images.Copy) (backstore.Store, error) {
	if err := r.flush(old, reopenWait); err != nil {
		return old, err
	}
	if err := SameKey(key, r.open.Key()); err != nil { // which an initiator may have replaced
		return old, err
	}
	if err := r.shut(old); err != nil { // the cache keeps nothing of it
		return old, err
	}
	if err := to.Place(); err != nil {
		return r.again(errors.Join(err, to.Undo()))
	}
	store, err := r.openAs(&r.to)
	if err != nil {
		return r.again(errors.Join(err, to.Undo()))
	}
	if err := r.noteStore(&r.to, -1); err != nil { // the next start says that it is another file, and takes it
		r.Log.Warn("the record of a volume's file", "volume", r.to.Name, "err", err)
	}
	r.open.Unit.Replaced()
	return store, nil
}

// notImage refuses to have a snapshot written to.
func notImage(v *conf.Volume) error {
	if v.Type != conf.FileVolume || v.ReadOnly || !images.IsImage(v.Path) {
		return nil
	}
	return fmt.Errorf("%s is a snapshot, which must stay as it is: found read-only: false, expected true; lunar volume snapshot clone makes a volume of it that can be written to", v.Path)
}

// rollBack is RollBack of a volume that this server owns. If it is gone afterwards, the server
// gives its claim up, and the next one opens what there is.
func (s *Shared) rollBack(life context.Context, loop *evloop.Loop, key string, to images.Copy) (pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(life, reopenWait)
	defer cancel()
	began := time.Now()
	err = s.slot.Exchange(ctx, func(old backstore.Store) (backstore.Store, error) {
		if _, away := old.(*absent); away {
			return old, errors.New("this server does not own it any more")
		}
		if err := flushWithin(loop, old, reopenWait); err != nil {
			return old, err
		}
		if err := SameKey(key, s.mark()); err != nil { // which an initiator may have replaced
			return old, err
		}
		if err := old.Close(); err != nil {
			return s.lose(old, err)
		}
		err := to.Place()
		if err == nil {
			var store backstore.Store
			if store, err = s.again(); err == nil {
				s.unit.Replaced()
				return store, nil
			}
		}
		err = errors.Join(err, to.Undo())
		store, lost := s.again()
		if lost != nil {
			return s.lose(old, errors.Join(err, lost))
		}
		return store, err
	})
	return time.Since(began), err
}

// again opens the image for the claim by which it was open.
func (s *Shared) again() (backstore.Store, error) {
	t := s.tenure.Load()
	if t == nil {
		return nil, errors.New("this server is giving it to another one")
	}
	image, store, err := s.open(s.opening, t)
	if err == nil {
		s.set.Health.opened(s.volume.Name, image, inCache(store))
	}
	return store, err
}

// lose gives up the claim of an image that is closed.
func (s *Shared) lose(was backstore.Store, err error) (backstore.Store, error) {
	s.set.Health.opened(s.volume.Name, nil, nil)
	s.cipher.Store(nil)
	s.opening.Lost(err)
	return newAbsent(s.looks(was.Info().Size)), err
}
