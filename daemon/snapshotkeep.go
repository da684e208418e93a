package daemon

import (
	"context"
	"errors"
	"sync"
	"time"

	"lunar/backstore/images"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/medium"
)

const (
	snapshotTick  = time.Second
	snapshotLooks = 8           // at a time: each is calls that block a thread
	snapshotRetry = time.Minute // after a snapshot that was due and was not made, unless its period is shorter
)

// keepSnapshots keeps the schedules of all volumes, and looks at their snapshots, until ctx
// ends.
func (a *applier) keepSnapshots(ctx context.Context) {
	tick := time.NewTicker(snapshotTick)
	defer tick.Stop()
	places := make(chan struct{}, snapshotLooks)
	var looking sync.WaitGroup
	defer looking.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			cfg := a.daemon.config.Load()
			a.snapshots.forget(cfg)
			for i := range cfg.Volumes {
				if v := &cfg.Volumes[i]; (v.Type == conf.FileVolume || v.Type == conf.RBDVolume) && a.snapshots.begin(v, now) {
					looking.Go(func() {
						places <- struct{}{}
						defer func() { <-places }()
						a.keepSnapshotsOf(v, now)
					})
				}
			}
		}
	}
}

// keepSnapshotsOf does what the schedule of a volume wants, and looks at its snapshots.
func (a *applier) keepSnapshotsOf(v *conf.Volume, now time.Time) {
	_, of, err := a.imagesOf(v.Name)
	var next time.Time
	var cause string
	if err == nil && v.Snapshots != nil {
		next, err = a.keepSchedule(v, of, now)
	}
	if err != nil && v.Snapshots != nil {
		next, cause = now.Add(min(v.Snapshots.Every, snapshotRetry)), err.Error()
		if a.snapshots.cause(v.Name) != cause {
			a.log.Warn("a scheduled snapshot was not made", "volume", v.Name, "err", err, "again at", next)
		}
	}
	told := measured(v, of)
	shared := int64(0)
	if told != nil {
		shared = told.SharedBytes
	}
	a.daemon.Health.Shares(v.Name, shared)
	if told != nil && !next.IsZero() {
		told.Due, told.Failed = &next, cause
	}
	a.snapshots.end(v.Name, told, next, cause)
}

// keepSchedule makes the snapshot that is due, and deletes those that are too many then.
func (a *applier) keepSchedule(v *conf.Volume, of images.Images, now time.Time) (next time.Time, err error) {
	all, err := of.List()
	if err != nil {
		return next, err
	}
	want := schedule(v.Snapshots, now, all)
	if want.name == "" && len(want.remove) == 0 {
		return want.next, nil
	}
	if err := a.lock(server.Asker{}); err != nil {
		return next, err
	}
	defer a.changing.Unlock()
	if want.name != "" {
		if _, err := a.snapshot(server.Asker{}, []string{v.Name}, want.name, control.DefaultHold); err != nil {
			return next, err // and none is deleted in its place
		}
	}
	for _, name := range want.remove {
		if _, gone := a.deleteSnapshot(v.Name, name); !errors.Is(gone, errServed) { // one that is served goes later
			err = errors.Join(err, gone)
		}
	}
	return want.next, err
}

// measured is what is told of the snapshots of a volume; nil: nothing. of is nil if it can
// have none.
func measured(v *conf.Volume, of images.Images) *control.VolumeSnapshots {
	out := &control.VolumeSnapshots{}
	var all []images.Image
	if of != nil {
		all, _ = of.List() // what cannot be listed is told when it is asked for
	}
	if len(all) == 0 && v.Snapshots == nil {
		return nil
	}
	if out.Count = len(all); out.Count > 0 {
		out.Newest = &all[len(all)-1].At
	}
	if v.Type == conf.FileVolume {
		if s, err := images.SpaceOf(medium.Path(v)); err == nil {
			out.OwnedBytes, out.SharedBytes = s.Owned, s.Shared
		}
	}
	return out
}
