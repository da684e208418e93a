package volumes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/rbd"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/bytesize"
	"lunar/internal/durable"
	"lunar/internal/evloop"
)

// reopenWait is how long what is under way on a volume may take to end before the
// volume is opened anew; others wait meanwhile.
const reopenWait = 5 * time.Second

// Reopens reports whether a volume has to be opened anew to follow its keys. That
// it becomes read-only, is written by another policy or has another share of the
// cache an open volume follows.
func (a *Set) Reopens(was, now *conf.Volume) bool {
	open := a.Open[was.Name]
	if open.Shared != nil {
		return false // its owner opens it
	}
	fenced := false
	if image, ok := a.Health.Base(was.Name).(*rbd.Store); ok {
		fenced = image.Fenced()
	}
	switch {
	case fenced, open.Slot.Empty(), was.Direct != now.Direct, (was.Cache == nil) != (now.Cache == nil):
		return true
	case was.Cache != nil && (was.Cache.Admission != now.Cache.Admission || was.Cache.ReadAhead != now.Cache.ReadAhead):
		return true
	case now.Write == conf.WriteBack && open.Cached != nil && !open.Cached.MayWriteBack():
		return true
	}
	return was.ReadOnly && !now.ReadOnly && open.Slot.Info().ReadOnly
}

// Reopen opens an open volume as another configuration says, and returns for how long
// commands were held. After an error it is open as before, unless the error says that
// it cannot be served.
func (a *Set) Reopen(life context.Context, loop *evloop.Loop, from, to *conf.Volume) (pause time.Duration, err error) {
	r := &reopening{Set: a, open: a.Open[from.Name], from: *from, to: *to, loop: loop}
	r.keepSize()
	if err := r.probe(); err != nil {
		return 0, err
	}
	if err := r.writeDirty(); err != nil {
		return 0, errors.Join(err, r.restore())
	}
	if err := a.NoteVolumes([]conf.Volume{r.to}); err != nil {
		a.unnoteReopened(r)
		return 0, errors.Join(err, r.restore())
	}
	ctx, cancel := context.WithTimeout(life, reopenWait)
	defer cancel()
	began := time.Now()
	err = r.open.Slot.Exchange(ctx, r.exchange)
	pause = time.Since(began)
	if err != nil && !r.closed {
		err = errors.Join(err, r.restore())
	}
	a.unnoteReopened(r)
	return pause, err
}

// unnoteReopened forgets a volume that has nothing dirty in the cache. A note that
// names too much harms nobody.
func (a *Set) unnoteReopened(r *reopening) {
	if r.open.Cached != nil && r.open.Cached.MayWriteBack() {
		return
	}
	if err := a.Unnote([]conf.Volume{r.to}); err != nil {
		r.Log.Warn("volume opened anew", "volume", r.to.Name, "err", err)
	}
}

// reopening is a volume that is being opened anew.
type reopening struct {
	*Set
	open     *Volume
	from, to conf.Volume
	loop     *evloop.Loop
	closed   bool // the store of before is
}

// keepSize has the volume opened with the size that it has: a size that differs is
// the affair of a resize.
func (r *reopening) keepSize() {
	for _, v := range []*conf.Volume{&r.from, &r.to} {
		if v.Size > 0 {
			v.Size = conf.Size(r.open.Slot.Info().Size)
		}
	}
}

// probe finds out whether the file or device, and what the state directory keeps
// besides it, can be opened while it is open still.
func (r *reopening) probe() error {
	if r.to.Path == "" {
		return nil // of a mirror: what its members lack is dealt with when they are opened
	}
	intents, err := r.intents(&r.to, sighting{})
	if err != nil {
		return err
	}
	found, err := backstore.Look(r.to.Path)
	if err != nil {
		return err
	}
	if log, err := durable.Open(intents.Log(found.Identity), unix.O_RDWR); err == nil {
		log.Close()
	} else if intents.Dir != "" && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	flags := unix.O_RDWR
	if r.to.ReadOnly {
		flags = unix.O_RDONLY
	}
	if r.to.Direct && !r.to.MayBuffer {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(r.to.Path, flags|unix.O_NONBLOCK, 0)
	if r.to.Type == conf.BlockVolume && (errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES)) {
		return nil // a device that is read-only is served so
	}
	if err != nil {
		return err
	}
	defer f.Close()
	there, err := f.Stat()
	if err != nil {
		return err
	}
	size := r.open.Slot.Info().Size
	switch was := r.open.file; {
	case was == nil || !os.SameFile(was, there):
		return fmt.Errorf("%s: found another file than the one that is open", r.to.Path)
	case r.to.Type != conf.BlockVolume && there.Size() != size:
		return fmt.Errorf("%s: found %d bytes, expected the %d that the volume has; lunar rescan follows a file that was resized", r.to.Path, there.Size(), size)
	}
	return nil
}

// writeDirty has all written that is in the cache alone, so that what is held back
// meanwhile does not wait for that.
func (r *reopening) writeDirty() error {
	if r.open.Slot.Empty() {
		return nil
	}
	if r.open.Cached == nil || !r.open.Cached.MayWriteBack() {
		return r.flush(r.open.Slot, CloseWait)
	}
	through := r.CacheChangesOf(&r.from)
	through.Policy = tier.Through
	if err := r.open.Cached.Change(through); err != nil {
		return err
	}
	AwaitWritten(r.open.Unit, r.open.Cached, CloseWait)
	if n := r.open.Slot.Dirty(); n > 0 {
		return fmt.Errorf("%s of it are in the cache and could not be written in %v; see lunar status", bytesize.Text(n), CloseWait)
	}
	return r.flush(r.open.Slot, CloseWait)
}

// flush is flushWithin of the volume. If it fails, those who have written to it may hear of that
// by nothing else.
func (r *reopening) flush(store backstore.Store, within time.Duration) error {
	err := flushWithin(r.loop, store, within)
	if errors.Is(err, backstore.ErrLost) {
		r.open.Unit.DeferredError(-1, err)
	}
	return err
}

// flushWithin makes a volume stable: once before, so that it is quick when everything is
// held.
func flushWithin(loop *evloop.Loop, store backstore.Store, within time.Duration) error {
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case err := <-flushOn(loop, store):
		if err != nil {
			return fmt.Errorf("it cannot be made stable: %w", err)
		}
		return nil
	case <-late.C:
		return fmt.Errorf("it could not be made stable in %v", within)
	}
}

// restore undoes what writeDirty has done to a volume that stays as it is.
func (r *reopening) restore() error {
	if r.open.Cached == nil {
		return nil
	}
	return r.open.Cached.Change(r.CacheChangesOf(&r.from))
}

// exchange closes the store and opens it anew; if that fails, as it was before. It
// never gives back a store that is closed, for its descriptor may be another file's.
func (r *reopening) exchange(old backstore.Store) (backstore.Store, error) {
	if err := r.flush(old, reopenWait); err != nil && !r.open.Slot.Empty() {
		return old, err
	}
	if r.open.Cached != nil && r.to.Cache != nil {
		r.open.Cached.Keep()
	}
	if err := r.shut(old); err != nil {
		return old, err
	}
	store, err := r.openAs(&r.to)
	if err == nil {
		return store, nil
	}
	return r.again(err)
}

// shut closes the store of before, all of which is stable. After an error it is open.
func (r *reopening) shut(old backstore.Store) error {
	err := old.Close()
	if err != nil && r.open.Cached != nil && !r.open.Cached.Left() {
		return err
	}
	r.closed, r.open.Cached = true, nil
	if err != nil {
		r.Log.Error("a volume that is opened anew was not closed in order; all of it had been made stable before", "volume", r.to.Name, "err", err)
	}
	return nil
}

// again opens the store as it was before, because of an error.
func (r *reopening) again(err error) (backstore.Store, error) {
	store, lost := r.openAs(&r.from)
	if lost == nil {
		return store, err
	}
	return nil, errors.Join(err, fmt.Errorf("it cannot be opened as before either, and IS NOT SERVED ANY MORE until it can: %w", lost))
}

// openAs opens the volume for its logical unit.
func (r *reopening) openAs(v *conf.Volume) (backstore.Store, error) {
	failing := &deferral{}
	layers, err := r.openLayers(v, sighting{}, failing)
	if err != nil {
		return nil, err
	}
	if err := r.open.Unit.Accepts(layers.store); err != nil {
		return nil, errors.Join(err, layers.store.Close())
	}
	failing.bind(r.open.Unit)
	r.open.layers = layers
	return layers.store, nil
}

// flushOn makes all stable that a store acknowledged, by a lane of its own on the
// loop. The channel gets the result.
func flushOn(loop *evloop.Loop, store backstore.Store) <-chan error {
	done := make(chan error, 1)
	loop.Post(evloop.Func(func() {
		lane, err := store.Lane(loop)
		if err != nil {
			done <- err
			return
		}
		op := &backstore.Op{Kind: backstore.Flush}
		op.Done = func(*backstore.Op) {
			loop.Post(evloop.Func(func() { // not within the lane's own code
				lane.Close()
				done <- op.Err
			}))
		}
		if lane.TryNow(op) || lane.Submit(op) {
			op.Done(op)
		}
	}))
	return done
}
