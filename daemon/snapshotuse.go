package daemon

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"lunar/backstore/images"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/internal/cli"
)

// CloneSnapshot implements server.Source.
func (s *source) CloneSnapshot(by server.Asker, volume, snapshot string, r control.SnapshotClone) (control.SnapshotCloned, error) {
	out, err := s.changes.clone(by, volume, snapshot, r)
	return out, notSnapshot(fmt.Sprintf("there is no volume %s of snapshot %s of volume %s", r.Volume, snapshot, volume), err)
}

// clone makes a volume of a snapshot: an edit of the configuration like any other, with a
// file that is made before.
func (a *applier) clone(by server.Asker, volume, snapshot string, r control.SnapshotClone) (out control.SnapshotCloned, err error) {
	v, of, err := a.imagesOf(volume)
	if err != nil {
		return out, err
	}
	i, err := imageOf(of, snapshot)
	if err != nil {
		return out, err
	}
	if a.daemon.config.Load().Volume(r.Volume) != nil {
		return out, errors.New("there is a volume of this name already")
	}
	out.Path = a.clonePath(v, i, &r)
	edit := control.Edit{Path: []string{"volumes", r.Volume}, Set: a.cloned(volume, out.Path, &r), IfNoneMatch: "*"}
	if r.ReadOnly || r.DryRun {
		out.Changed, err = a.edit(by, control.Changes{Edits: []control.Edit{edit}, Permissions: r.Permissions})
		return out, err
	}
	if err := by.Begin(); err != nil {
		return out, err
	}
	began := time.Now()
	file, err := of.Clone(a.life, snapshot, out.Path)
	if err != nil {
		return out, err
	}
	if err := file.Place(); err != nil {
		return out, errors.Join(err, file.Undo())
	}
	took := time.Since(began)
	out.Took = took.Round(10 * time.Microsecond).String()
	if out.Changed, err = a.edit(by, control.Changes{Edits: []control.Edit{edit}, Permissions: r.Permissions}); err != nil {
		return out, errors.Join(err, file.Undo())
	}
	a.snapshots.changed(volume)
	a.log.Info("snapshot cloned", "snapshot", snapshot, "volume", volume, "as", r.Volume, "file", out.Path, "took", took)
	return out, file.Settle()
}

// clonePath is where the file of a clone is, or is to be.
func (a *applier) clonePath(v *conf.Volume, i images.Image, r *control.SnapshotClone) string {
	switch {
	case r.ReadOnly:
		return i.Path
	case r.Path == "":
		return filepath.Join(filepath.Dir(v.Path), r.Volume+filepath.Ext(v.Path))
	case filepath.IsAbs(r.Path):
		return filepath.Clean(r.Path)
	}
	return filepath.Join(a.dir, r.Path)
}

// notCloned are the keys that a clone does not have of its volume: what tells disks from each
// other, what is about the file, and what others would do with the clone by themselves.
var notCloned = []string{"path", "size", "serial", "naa", "designators", "snapshots", "excess", "excess-size", "excess-writes"}

// notRead are the keys that make no sense where nothing is written.
var notRead = []string{"write", "cache", "soft-threshold", "sanitize-rate"}

// cloned is what the configuration is to have of a clone.
func (a *applier) cloned(volume, path string, r *control.SnapshotClone) control.Object {
	object := control.Object{}
	if of, err := (&source{changes: a}).Object([]string{"volumes", volume}); err == nil {
		object = of.Config
	}
	without := notCloned
	if r.ReadOnly {
		without = append(slices.Clone(notCloned), notRead...)
	}
	for _, key := range without {
		delete(object, key)
	}
	maps.Copy(object, r.Configuration)
	object["type"], object["path"] = "file", path
	if r.ReadOnly {
		object["read-only"] = true
	}
	return object
}

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
	if err != nil {
		return out, err
	}
	var before images.Draft
	if !r.Discard {
		out.Kept = "before-" + time.Now().UTC().Format(byMoment)
		if before, err = of.Begin(out.Kept); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, before.Discard()) }()
	}
	file, err := of.Restore(a.life, snapshot, a.daemon.assembly.Open[volume].Slot.Info().Size)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, file.Settle()) }()
	keep := func() error {
		if before == nil {
			return nil
		}
		if err := before.Take(a.life, nil); err != nil {
			return err
		}
		return before.Keep(time.Now())
	}
	held, err := a.daemon.Set.RollBack(a.life, a.daemon.Loops()[0], v, keep, file)
	if err != nil {
		return out, err
	}
	out.At, out.Held = i.At, held.Round(10*time.Microsecond).String()
	a.snapshots.changed(volume)
	a.log.Warn("volume rolled back", "volume", volume, "snapshot", snapshot, "at", i.At, "before", out.Kept, "commands were held for", held)
	return out, nil
}

// mayRollBack refuses a volume whose initiators would find other data than they know.
func (a *applier) mayRollBack(v *conf.Volume, force bool) error {
	switch {
	case v.ReadOnly:
		return errors.New("it is read-only")
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
