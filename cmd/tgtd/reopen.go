package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/durable"
	"lunar/internal/evloop"
	"lunar/target/scsi"
)

// reopenWait is how long what is under way on a volume may take to end before the
// volume is opened anew; others wait meanwhile.
const reopenWait = 5 * time.Second

// reopens reports whether a volume has to be opened anew to follow its keys. That
// it becomes read-only, is written by another policy or has another share of the
// cache an open volume follows.
func (a *assembly) reopens(was, now *conf.Volume) bool {
	behind := a.caches[was.Name]
	switch {
	case slotOf(a.units[was.Name]).Empty(), was.Direct != now.Direct, (was.Cache == nil) != (now.Cache == nil):
		return true
	case was.Cache != nil && (was.Cache.Admission != now.Cache.Admission || was.Cache.ReadAhead != now.Cache.ReadAhead):
		return true
	case now.Write == conf.WriteBack && behind != nil && !behind.MayWriteBack():
		return true
	}
	return was.ReadOnly && !now.ReadOnly && a.units[was.Name].Store().Info().ReadOnly
}

// slotOf is where a logical unit has its store.
func slotOf(lu *scsi.LogicalUnit) *backstore.Slot { return lu.Store().(*backstore.Slot) }

// reopenings are the volumes that have to be opened anew.
func (c *change) reopenings() (all []*conf.Volume) {
	for i := range c.cfg.Volumes {
		now := &c.cfg.Volumes[i]
		if was := c.old.Volume(now.Name); was != nil && c.daemon.assembly.reopens(was, now) {
			all = append(all, now)
		}
	}
	return all
}

// reopen opens volumes anew that can follow their keys in no other way. What their
// initiators have sent waits for some milliseconds.
func (c *change) reopen() error {
	for _, now := range c.reopenings() {
		was, lost := c.old.Volume(now.Name), slotOf(c.daemon.assembly.units[now.Name]).Empty()
		pause, err := c.daemon.reopen(c.life, was, now)
		if err != nil {
			return fmt.Errorf("volume %s: %w", now.Name, err)
		}
		if lost {
			c.did = append(c.did, conf.Key("volumes", now.Name)+": it is served again")
		} else {
			c.did = append(c.did, fmt.Sprintf("%s: opened anew, commands waited for %v", conf.Key("volumes", now.Name), pause.Round(100*time.Microsecond)))
		}
		c.reopened[now.Name] = true
		c.undo = append(c.undo, func() error { _, err := c.daemon.reopen(c.life, now, was); return err })
	}
	return nil
}

// reopen opens an open volume as another configuration says, and returns for how long
// commands were held. After an error it is open as before, unless the error says that
// it cannot be served.
func (d *daemon) reopen(life context.Context, from, to *conf.Volume) (pause time.Duration, err error) {
	a := d.assembly
	r := &reopening{assembly: a, unit: a.units[from.Name], from: *from, to: *to, behind: a.caches[from.Name], loop: d.Loops()[0]}
	r.keepSize()
	if err := r.probe(); err != nil {
		return 0, err
	}
	if err := r.writeDirty(); err != nil {
		return 0, errors.Join(err, r.restore())
	}
	if err := d.noteVolumes([]conf.Volume{r.to}); err != nil {
		d.unnoteReopened(r)
		return 0, errors.Join(err, r.restore())
	}
	ctx, cancel := context.WithTimeout(life, reopenWait)
	defer cancel()
	began := time.Now()
	err = slotOf(r.unit).Exchange(ctx, r.exchange)
	pause = time.Since(began)
	if err != nil && !r.closed {
		err = errors.Join(err, r.restore())
	}
	delete(a.caches, from.Name)
	if r.behind != nil {
		a.caches[from.Name] = r.behind
	}
	d.unnoteReopened(r)
	return pause, err
}

// unnoteReopened forgets a volume that has nothing dirty in the cache. A note that
// names too much harms nobody.
func (d *daemon) unnoteReopened(r *reopening) {
	if r.behind != nil && r.behind.MayWriteBack() {
		return
	}
	if err := d.unnote([]conf.Volume{r.to}); err != nil {
		r.log.Warn("volume opened anew", "volume", r.to.Name, "err", err)
	}
}

// reopening is a volume that is being opened anew.
type reopening struct {
	*assembly
	unit     *scsi.LogicalUnit
	from, to conf.Volume
	behind   tier.Changeable // its part in the cache; nil: there is none
	loop     *evloop.Loop
	closed   bool // the store of before is
}

// keepSize has the volume opened with the size that it has: a size that differs is
// the affair of a resize.
func (r *reopening) keepSize() {
	for _, v := range []*conf.Volume{&r.from, &r.to} {
		if v.Size > 0 {
			v.Size = conf.Size(r.unit.Store().Info().Size)
		}
	}
}

// probe finds out whether the file or device, and what the state directory keeps
// besides it, can be opened while it is open still.
func (r *reopening) probe() error {
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
	size := r.unit.Store().Info().Size
	switch was := r.files[r.from.Name]; {
	case was == nil || !os.SameFile(was, there):
		return fmt.Errorf("%s: found another file than the one that is open", r.to.Path)
	case r.to.Type == conf.FileVolume && there.Size() != size:
		return fmt.Errorf("%s: found %d bytes, expected the %d that the volume has; tgtd rescan follows a file that was resized", r.to.Path, there.Size(), size)
	}
	return nil
}

// writeDirty has all written that is in the cache alone, so that what is held back
// meanwhile does not wait for that.
func (r *reopening) writeDirty() error {
	if slotOf(r.unit).Empty() {
		return nil
	}
	if r.behind == nil || !r.behind.MayWriteBack() {
		return r.flush(r.unit.Store(), closeWait)
	}
	through := r.cacheChangesOf(&r.from)
	through.Policy = tier.Through
	if err := r.behind.Change(through); err != nil {
		return err
	}
	awaitWritten(r.unit, r.behind, closeWait)
	if n := r.unit.Store().(backstore.WriteBack).Dirty(); n > 0 {
		return fmt.Errorf("%s of it are in the cache and could not be written in %v; see tgtd status", size(n), closeWait)
	}
	return r.flush(r.unit.Store(), closeWait)
}

// flush makes the volume stable: once before, so that it is quick when everything is
// held.
func (r *reopening) flush(store backstore.Store, within time.Duration) error {
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case err := <-flushOn(r.loop, store):
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
	if r.behind == nil {
		return nil
	}
	return r.behind.Change(r.cacheChangesOf(&r.from))
}

// exchange closes the store and opens it anew; if that fails, as it was before. It
// never gives back a store that is closed, for its descriptor may be another file's.
func (r *reopening) exchange(old backstore.Store) (backstore.Store, error) {
	if err := r.flush(old, reopenWait); err != nil && !slotOf(r.unit).Empty() {
		return old, err
	}
	if r.behind != nil && r.to.Cache != nil {
		r.behind.Keep()
	}
	err := old.Close()
	if err != nil && r.behind != nil && !r.behind.Left() {
		return old, err
	}
	r.closed, r.behind = true, nil
	if err != nil {
		r.log.Error("a volume that is opened anew was not closed in order; all of it had been made stable before", "volume", r.to.Name, "err", err)
	}
	store, err := r.open(&r.to)
	if err == nil {
		return store, nil
	}
	if store, again := r.open(&r.from); again == nil {
		return store, err
	} else {
		return nil, errors.Join(err, fmt.Errorf("it cannot be opened as before either, and IS NOT SERVED ANY MORE until it can: %w", again))
	}
}

// open opens the volume for its logical unit.
func (r *reopening) open(v *conf.Volume) (backstore.Store, error) {
	failing := &deferral{}
	store, behind, err := r.openLayers(v, sighting{}, failing)
	if err != nil {
		return nil, err
	}
	if err := r.unit.Holds(store); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	failing.bind(r.unit)
	r.behind = behind
	return store, nil
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
