package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"lunar/cache/tier"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/medium"
	"lunar/daemon/volumes"
	"lunar/internal/bytesize"
)

// Detach implements server.Source.
func (s *source) Detach(by server.Asker, volume string, d control.Detach) (control.Detached, error) {
	if err := by.Begin(); err != nil {
		return control.Detached{}, err
	}
	defer awaits(by, conf.Key("volumes", volume)+": given up, once its sessions and commands have ended")()
	return s.changes.detach(volume, d.Discard)
}

// detach gives up a volume that was removed and cannot be closed, because its file or
// device does not take what was acknowledged. The cache keeps that, as it keeps what a
// restart finds of volumes that are not configured any more; with discard it is lost,
// also what is kept so already.
//
// A change waits for volumes that are being closed, so this does not wait for changes:
// until such a volume is closed, none of its name or store is opened.
func (a *applier) detach(volume string, discard bool) (control.Detached, error) {
	v := a.departing(volume)
	if v == nil {
		return a.discardOrphan(volume, discard)
	}
	refuse := notGivenUp(volume)
	ctx, cancel := context.WithTimeout(a.life, volumes.CloseWait)
	defer cancel()
	dirty, err := a.daemon.DetachLogicalUnit(ctx, v.unit, discard)
	if err != nil {
		return refuse(err.Error())
	}
	close(v.given)
	out := control.Detached{Store: medium.Path(v.Volume), Kept: dirty}
	if discard {
		out.Kept, out.Lost = 0, dirty
	}
	a.log.Warn("volume given up", "volume", volume, "store", out.Store, "kept in the cache", out.Kept, "lost", out.Lost)
	if out.Kept > 0 {
		a.daemon.NoteOrphan(v.Volume)
		return out, nil
	}
	return out, errors.Join(a.daemon.Unnote([]conf.Volume{*v.Volume}), a.daemon.assembly.ForgetStore(v.Volume))
}

// notGivenUp refuses.
func notGivenUp(volume string) func(why string) (control.Detached, error) {
	return func(why string) (control.Detached, error) {
		return control.Detached{}, &control.Refusal{What: "volume " + volume + " was not given up", State: true, Reasons: []control.Reason{{Text: why}}}
	}
}

// departing returns the volume of a name that is being closed, or nil.
func (a *applier) departing(volume string) *departure {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.leaving, func(d *departure) bool { return d.Name == volume })
	if i < 0 {
		return nil
	}
	return a.leaving[i]
}

// discardOrphan drops what the cache keeps of a volume that is not open.
func (a *applier) discardOrphan(volume string, discard bool) (control.Detached, error) {
	refuse := notGivenUp(volume)
	if !a.changing.TryLock() { // a change may wait for the very volume
		return refuse("another change is under way: try again")
	}
	defer a.changing.Unlock()
	if a.daemon.config.Load().Volume(volume) != nil {
		return refuse("found it in the configuration: apply one without it and its LUNs first")
	}
	var found []tier.Orphan
	if a.daemon.Cache != nil {
		found = slices.DeleteFunc(slices.Clone(a.daemon.Cache.Attached().Orphans), func(o tier.Orphan) bool { return o.Name != volume })
	}
	switch {
	case len(found) == 0:
		return refuse("found no volume of that name that is being closed, and the cache keeps nothing of one")
	case len(found) > 1:
		return refuse(fmt.Sprintf("the cache keeps data of %d volumes of that name", len(found)))
	case !discard:
		return refuse(fmt.Sprintf("it is closed; the cache keeps %s that %s does not have, which --discard would lose", bytesize.Text(found[0].Bytes), a.daemon.OrphanStore(found[0].ID)))
	}
	out := control.Detached{Store: a.daemon.OrphanStore(found[0].ID)}
	lost, err := a.daemon.Cache.Discard(found[0].ID)
	if err != nil {
		return refuse(err.Error())
	}
	out.Lost = lost
	a.log.Warn("unwritten data of a volume in the cache are given up", "volume", volume, "store", out.Store, "lost", lost)
	return out, a.daemon.ForgetOrphan(found[0].ID)
}
