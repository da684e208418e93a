package volumes

import (
	"context"
	"errors"
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
		return nil, errors.New("found no file or device that serves it now")
	case images.Source:
		return base.Images()
	}
	return nil, images.ErrUnsupported
}

// RollBack has an open volume go on with what place puts at its path, and returns for how
// long commands were held. before is called once everything that was acknowledged is on the
// file. Initiators hear that the medium may have changed, and nothing of before is left in the
// cache. After an error the volume is open with what it had, unless the error says that it
// cannot be served.
func (a *Set) RollBack(life context.Context, loop *evloop.Loop, v *conf.Volume, before func() error, to images.Copy) (pause time.Duration, err error) {
	r := &reopening{Set: a, open: a.Open[v.Name], from: *v, to: *v, loop: loop}
	r.keepSize()
	if err := r.writeDirty(); err != nil {
		return 0, errors.Join(err, r.restore())
	}
	ctx, cancel := context.WithTimeout(life, reopenWait)
	defer cancel()
	began := time.Now()
	err = r.open.Slot.Exchange(ctx, func(old backstore.Store) (backstore.Store, error) { return r.rollBack(old, before, to) })
	pause = time.Since(began)
	if err != nil && !r.closed {
		err = errors.Join(err, r.restore())
	}
	return pause, err
}

func (r *reopening) rollBack(old backstore.Store, before func() error, to images.Copy) (backstore.Store, error) {
	if err := r.flush(old, reopenWait); err != nil {
		return old, err
	}
	if err := before(); err != nil {
		return old, err
	}
	if err := r.shut(old); err != nil { // the cache keeps nothing of it
		return old, err
	}
	if err := to.Place(); err != nil {
		return r.again(err)
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
