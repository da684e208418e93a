package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"lunar/conf"
	"lunar/daemon/volumes"
	"lunar/target/scsi"
)

// planned is what leads to a configuration.
func (a *applier) planned(cfg *conf.Config) conf.Plan {
	running := a.daemon.config.Load()
	cfg.Follow(running)
	return conf.Between(running, cfg)
}

// changeCaches puts into force what has changed of the cache and of how volumes use
// it.
func (c *change) changeCaches() error {
	if c.daemon.Cache == nil {
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
	c.daemon.Cache.SetDirtyLimit(int64(to.Cache.DirtyLimit.Of(a.CacheSize)))
	var names []string
	for name, open := range a.Open {
		if open.Cached == nil {
			continue
		}
		was, now := from.Volume(name), to.Volume(name)
		if was != nil && now != nil && !a.Reopens(was, now) {
			names = append(names, name)
		}
	}
	more := func(name string) conf.Size { return to.Volume(name).Cache.Min - from.Volume(name).Cache.Min }
	slices.SortFunc(names, func(x, y string) int { return cmp.Compare(more(x), more(y)) })
	for _, name := range names {
		was, now := a.CacheChangesOf(from.Volume(name)), a.CacheChangesOf(to.Volume(name))
		if was != now || from.Cache.DirtyLimit != to.Cache.DirtyLimit {
			err = errors.Join(err, a.Open[name].Cached.Change(now))
		}
	}
	return err
}

// changeUnits hands the logical units their new settings. It waits, for some time,
// for the dirty data of volumes that no longer write back.
func (c *change) changeUnits() {
	for i := range c.cfg.Volumes {
		v := &c.cfg.Volumes[i]
		was, lu := c.old.Volume(v.Name), c.daemon.assembly.Unit(v.Name)
		if was == nil || lu == nil {
			continue
		}
		if settings := volumes.SettingsOf(c.cfg, v); settings != volumes.SettingsOf(c.old, was) || c.reopened[v.Name] {
			if err := c.reconfigure(lu, settings); err != nil {
				c.did = append(c.did, fmt.Sprintf("%s: %v; initiators that flush will hear of it", conf.Key("volumes", v.Name), err))
			}
		}
		if v.Threads != was.Threads {
			c.daemon.SpreadLogicalUnit(lu, v.Threads)
		}
		if was.Write == conf.WriteBack && v.Write != conf.WriteBack && !c.reopened[v.Name] {
			open := c.daemon.assembly.Open[v.Name]
			ended := c.awaitsDirty(v.Name, open.Slot, "its last writes are made stable")
			c.did = append(c.did, fmt.Sprintf("%s: %s", conf.Key("volumes", v.Name, "write"), volumes.AwaitWritten(lu, open.Cached, volumes.CloseWait)))
			ended()
		}
	}
}

// reconfigure tells a logical unit its settings. A flush that this takes may go on
// after some time.
func (c *change) reconfigure(lu *scsi.LogicalUnit, settings scsi.Settings) error {
	ctx, cancel := context.WithTimeout(c.life, volumes.CloseWait)
	defer cancel()
	defer awaits(c.by, conf.Key("volumes", lu.Name())+": gets its settings, once what it has taken is stable")()
	return c.daemon.ReconfigureUnit(ctx, lu, settings)
}
