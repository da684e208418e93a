package daemon

import (
	"errors"
	"slices"
	"sync"
	"time"

	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/volumes"
)

// closeRetry is how long it takes until a volume is tried again that could not be
// closed.
const closeRetry = 5 * time.Second

// closeVolumes closes the volumes that are not configured any more, each when no
// command of it runs and what the cache has of it is written.
func (c *change) closeVolumes() {
	var closing sync.WaitGroup
	a := c.daemon.assembly
	for i := range c.old.Volumes {
		v := &c.old.Volumes[i]
		lu := a.Unit(v.Name)
		if c.cfg.Volume(v.Name) != nil || lu == nil {
			continue
		}
		delete(a.Open, v.Name)
		c.untrack(v.Name)
		d := &departure{Volume: v, unit: lu, given: make(chan struct{})}
		c.leave(d, true)
		closing.Go(func() {
			c.close(d)
			c.daemon.Health.Forget(d.Name)
			c.leave(d, false)
		})
	}
	defer c.awaitsClosing()()
	closed := make(chan struct{})
	go func() { closing.Wait(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(volumes.CloseWait):
		for _, name := range c.stillLeaving() {
			c.did = append(c.did, conf.Key("volumes", name)+": still being closed; its sessions have not ended, or it is being written")
		}
	}
}

// close closes a volume, and tries again until it succeeds, an administrator gives it
// up, or the daemon ends: what it acknowledged must not be given up otherwise.
func (a *applier) close(v *departure) {
	a.disown(v.Volume)
	for {
		err := a.daemon.RemoveLogicalUnit(a.life, v.unit)
		if err == nil {
			a.log.Info("volume closed", "volume", v.Name)
			if err := errors.Join(a.daemon.Unnote([]conf.Volume{*v.Volume}), a.daemon.assembly.ForgetStore(v.Volume)); err != nil {
				a.log.Warn("volume closed", "volume", v.Name, "err", err)
			}
			return
		}
		select {
		case <-v.given:
			return
		default:
		}
		if a.life.Err() != nil {
			return
		}
		a.log.Error("a volume that was removed cannot be closed, and is tried again; lunar detach gives it up", "volume", v.Name, "err", err)
		select {
		case <-a.life.Done():
			return
		case <-v.given:
			return
		case <-time.After(closeRetry):
		}
	}
}

// leave notes that a volume is being closed, or is not any more.
func (a *applier) leave(v *departure, begins bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if begins {
		a.leaving = append(a.leaving, v)
		return
	}
	a.leaving = slices.DeleteFunc(a.leaving, func(o *departure) bool { return o == v })
}

func (a *applier) stillLeaving() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, v := range a.leaving {
		names = append(names, v.Name)
	}
	return names
}

// beingClosed returns the volume that is being closed and has the name or the
// store of another; empty: none.
func (a *applier) beingClosed(v *conf.Volume) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.leaving {
		if o.Name == v.Name || medium.Same(medium.Path(o.Volume), medium.Path(v)) {
			return o.Name
		}
	}
	return ""
}
