package daemon

import (
	"errors"
	"fmt"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/volumes"
	"lunar/internal/cli"
)

// RollBack implements server.Source.
func (s *source) RollBack(by server.Asker, volume, snapshot string, r control.SnapshotRollback) (out control.RolledBack, err error) {
	if err = s.changes.lock(by); err == nil {
		defer s.changes.changing.Unlock()
		out, err = s.changes.rollBack(volume, snapshot, r)
	}
	return out, notSnapshot(fmt.Sprintf("volume %s was not rolled back", volume), err)
}

// rollBack has a volume hold what it held at the moment of a snapshot. The caller holds the
// changes.
func (a *applier) rollBack(volume, snapshot string, r control.SnapshotRollback) (out control.RolledBack, err error) {
	v, of, err := a.imagesOf(volume)
	if err != nil {
		return out, err
	}
	i, err := imageOf(of, snapshot)
	if err == nil {
		err = a.mayRollBack(v, r.Force)
	}
	if err == nil {
		err = volumes.SameKey(i.Key, a.daemon.assembly.Open[volume].Key())
	}
	if err != nil {
		return out, err
	}
	if !r.Discard {
		out.Kept = "before-" + time.Now().UTC().Format(byMoment)
	}
	file, err := of.Restore(a.life, snapshot, a.daemon.assembly.Open[volume].Slot.Info().Size, out.Kept, i.Key)
	if err != nil {
		return out, err
	}
	held, err := a.daemon.Set.RollBack(a.life, a.daemon.Loops()[0], v, i.Key, file)
	settled := file.Settle()
	if err != nil {
		return out, errors.Join(err, settled)
	}
	out.At, out.Held = i.At, held.Round(10*time.Microsecond).String()
	a.snapshots.changed(volume)
	a.log.Warn("volume rolled back", "volume", volume, "snapshot", snapshot, "at", i.At, "before", out.Kept, "commands were held for", held)
	if settled != nil {
		out.Warning = settled.Error()
		a.log.Error("volume rolled back, and not all is in order", "volume", volume, "err", settled)
	}
	return out, nil
}

// mayRollBack refuses a volume whose initiators would find other data than they know.
func (a *applier) mayRollBack(v *conf.Volume, force bool) error {
	switch {
	case v.ReadOnly:
		return errors.New("it is read-only")
	case v.Clustered() && !force:
		return errors.New("other nodes present it, whose sessions are not counted here: log its hosts out on all nodes, then force it (--force)")
	case a.moves.has(v.Name):
		return errors.New("it is being sent, received or read as a whole: wait for that, or cancel it (lunar jobs)")
	}
	if err := a.daemon.assembly.Still(v); err != nil {
		return err
	}
	users := 0
	for _, n := range a.daemon.Sessions() {
		for _, l := range n.LUNs {
			if l.LU.Name() == v.Name {
				users++
				break
			}
		}
	}
	if users > 0 && !force {
		return fmt.Errorf("found %s with it, whose hosts would find other data below what they have cached: log them out first, or force it (--force)", cli.Counted(users, "session"))
	}
	return nil
}
