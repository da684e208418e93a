package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/target/scsi"
)

// settingsOf are what a logical unit is told of its volume's configuration and can
// be told again.
func settingsOf(cfg *conf.Config, v *conf.Volume) scsi.Settings {
	return scsi.Settings{
		WriteThrough: v.Write == conf.WriteSync, ReadOnly: v.ReadOnly,
		SanitizeRate: int64(v.SanitizeRate), SoftThreshold: int64(v.SoftThreshold),
		PhysicalBlock: v.PhysicalBlockSize, ExplicitAccess: explicitAccess(cfg),
	}
}

// cachePolicy is a volume's write policy in the cache. That of write: sync is
// Through: the logical unit has each write made stable.
func cachePolicy(w conf.WritePolicy) tier.Policy {
	if w == conf.WriteBack {
		return tier.Back
	}
	return tier.Through
}

// cacheChangesOf is the same for the cache.
func (a *assembly) cacheChangesOf(v *conf.Volume) tier.Changes {
	return tier.Changes{
		Policy: cachePolicy(v.Write), Min: int64(v.Cache.Min), Max: int64(v.Cache.Max),
		Age: v.Cache.FlushAge, DirtyLimit: int64(v.Cache.DirtyLimit.Of(a.cacheSize)),
	}
}

// planned is what leads to a configuration.
func (a *applier) planned(cfg *conf.Config) conf.Plan {
	running := a.daemon.config.Load()
	cfg.Follow(running)
	return conf.Between(running, cfg)
}

// changeCaches puts into force what has changed of the cache and of how volumes use
// it.
func (c *change) changeCaches() error {
	if c.daemon.cache == nil {
		return nil
	}
	if err := c.shareCache(c.old, c.cfg); err != nil {
		return errors.Join(err, c.shareCache(c.cfg, c.old))
	}
	c.undo = append(c.undo, func() error { return c.shareCache(c.cfg, c.old) })
	return nil
}

// shareCache leads from one configuration to another, first where a volume gives
// up some of its minimum.
func (c *change) shareCache(from, to *conf.Config) (err error) {
	a := c.daemon.assembly
	c.daemon.cache.SetDirtyLimit(int64(to.Cache.DirtyLimit.Of(a.cacheSize)))
	var names []string
	for name := range a.caches {
		was, now := from.Volume(name), to.Volume(name)
		if was != nil && now != nil && a.units[name] != nil && !a.reopens(was, now) {
			names = append(names, name)
		}
	}
	more := func(name string) conf.Size { return to.Volume(name).Cache.Min - from.Volume(name).Cache.Min }
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(more(x), more(y)) })
	for _, name := range names {
		was, now := a.cacheChangesOf(from.Volume(name)), a.cacheChangesOf(to.Volume(name))
		if was != now || from.Cache.DirtyLimit != to.Cache.DirtyLimit {
			err = errors.Join(err, a.caches[name].Change(now))
		}
	}
	return err
}

// changeUnits tells logical units what they are told anew. What a volume that
// writes back no more still has in the cache is waited for, for some time.
func (c *change) changeUnits() {
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		was, lu := c.old.Volume(v.Name), c.daemon.assembly.units[v.Name]
		if was == nil || lu == nil {
			continue
		}
		if settings := settingsOf(c.cfg, v); settings != settingsOf(c.old, was) || c.reopened[v.Name] {
			if err := c.reconfigure(lu, settings); err != nil {
				c.did = append(c.did, fmt.Sprintf("%s: %v; initiators that flush will hear of it", conf.Key("volumes", v.Name), err))
			}
		}
		if v.Threads != was.Threads {
			c.daemon.SpreadLogicalUnit(lu, v.Threads)
		}
		if was.Write == conf.WriteBack && v.Write != conf.WriteBack && !c.reopened[v.Name] {
			c.did = append(c.did, fmt.Sprintf("%s: %s", conf.Key("volumes", v.Name, "write"), awaitWritten(lu, c.daemon.assembly.caches[v.Name], closeWait)))
		}
	}
}

// reconfigure tells a logical unit its settings. A flush that this takes may go on
// after some time.
func (c *change) reconfigure(lu *scsi.LogicalUnit, settings scsi.Settings) error {
	ctx, cancel := context.WithTimeout(c.life, closeWait)
	defer cancel()
	return c.daemon.ReconfigureUnit(ctx, lu, settings)
}

// awaitWritten waits until nothing of a volume is in the cache alone, and says what
// still is when the time has passed.
func awaitWritten(lu *scsi.LogicalUnit, behind tier.Changeable, within time.Duration) string {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(within); ; time.Sleep(pause) {
		settled, n := behind.Settled(), int64(0)
		if s, ok := lu.Store().(backstore.WriteBack); ok {
			n = s.Dirty()
		}
		switch {
		case n == 0 && settled:
			return "all that was in the cache has been written"
		case time.Now().After(end):
			return size(n) + " in the cache are still being written; see tgtd status"
		}
	}
}
