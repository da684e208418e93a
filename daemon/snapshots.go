package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lunar/backstore/images"
	"lunar/backstore/protect"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/medium"
)

// scheduledPrefix begins the names of snapshots that a schedule makes and deletes; nobody else
// gives such a name.
const scheduledPrefix = "auto-"

// byMoment is the name of a snapshot that nobody has named.
const byMoment = "20060102T150405.000Z"

// imagesOf are the snapshots of a volume.
func (a *applier) imagesOf(volume string) (*conf.Volume, images.Images, error) {
	v := a.daemon.config.Load().Volume(volume)
	if v == nil {
		return nil, nil, &control.Refusal{What: "found no volume " + volume, Missing: true}
	}
	unsupported := func(why string) (*conf.Volume, images.Images, error) {
		return nil, nil, fmt.Errorf("%w: %s", images.ErrUnsupported, why)
	}
	switch {
	case v.Type != conf.FileVolume && v.Type != conf.RBDVolume:
		return unsupported(fmt.Sprintf("it has type %s; a volume of type file on xfs or btrfs, or of type rbd, can", v.Type))
	case v.Excess != "":
		return unsupported("it has excess, a device that has a part of its data")
	}
	all, err := a.daemon.Set.Images(v)
	if err == nil && v.Protection != 0 {
		all, err = withTuples(v, all)
	}
	return v, all, err
}

// tuplesBeside is where the protection information of a file is unless the configuration says
// otherwise.
func tuplesBeside(path string) string { return path + conf.TuplesSuffix }

// withTuples are snapshots of a volume with those of its protection information.
func withTuples(v *conf.Volume, data images.Images) (images.Images, error) {
	tuples, err := images.Of(v.ProtectionFile, -1)
	if err != nil {
		return nil, err
	}
	return images.Pair(data, tuples, tuplesBeside, protect.Clean), nil
}

// notSnapshot is why something was not done with a snapshot.
func notSnapshot(what string, err error) error {
	if r := (*control.Refusal)(nil); err == nil || errors.As(err, &r) {
		return err
	}
	return &control.Refusal{What: what, State: true, Missing: errors.Is(err, images.ErrNone), Reasons: []control.Reason{{Text: err.Error()}}}
}

// Snapshots implements server.Source.
func (s *source) Snapshots(volume string) ([]control.Snapshot, error) {
	out, err := s.changes.listSnapshots(volume)
	return out, notSnapshot("the snapshots of volume "+volume+" cannot be told", err)
}

// measureTime bounds how long a list measures the space of what it lists.
const measureTime = 2 * time.Second

func (a *applier) listSnapshots(volume string) ([]control.Snapshot, error) {
	_, of, err := a.imagesOf(volume)
	if err != nil {
		return nil, err
	}
	all, err := of.List()
	if err != nil {
		return nil, err
	}
	served, until := a.served(), time.Now().Add(measureTime)
	out := []control.Snapshot{}
	for _, i := range all {
		one := snapshotOf(i, served)
		if time.Now().Before(until) {
			if s, err := of.Space(i); err == nil && !s.Part {
				one.Owned, one.Shared = &s.Owned, &s.Shared
			}
		}
		out = append(out, one)
	}
	return out, nil
}

func snapshotOf(i images.Image, served map[medium.Key]string) control.Snapshot {
	out := control.Snapshot{Name: i.Name, At: i.At, Size: i.Size, Path: i.Path}
	if key, ok := medium.KeyOf(i.Path); ok {
		out.Used = served[key]
	}
	return out
}

// served are the volumes by their files and devices.
func (a *applier) served() map[medium.Key]string {
	all := map[medium.Key]string{}
	cfg := a.daemon.config.Load()
	for i := range cfg.Volumes {
		if key, ok := medium.KeyOf(cfg.Volumes[i].Path); ok {
			all[key] = cfg.Volumes[i].Name
		}
	}
	return all
}

// imageOf is the snapshot of a name.
func imageOf(of images.Images, name string) (images.Image, error) {
	all, err := of.List()
	if err != nil {
		return images.Image{}, err
	}
	if i := slices.IndexFunc(all, func(i images.Image) bool { return i.Name == name }); i >= 0 {
		return all[i], nil
	}
	return images.Image{}, images.ErrNone
}

// MakeSnapshot implements server.Source.
func (s *source) MakeSnapshot(by server.Asker, volume string, r control.SnapshotRequest) (out control.SnapshotMade, err error) {
	switch hold, wrong := freezeDeadline(r.Deadline, control.DefaultHold); {
	case wrong != nil:
		err = &control.Refusal{What: "there is no snapshot", Reasons: []control.Reason{{Text: wrong.Error()}}}
	case strings.HasPrefix(r.Name, scheduledPrefix):
		err = fmt.Errorf("found name %s: names that begin with %s are those of the schedule, which deletes them", r.Name, scheduledPrefix)
	default:
		if r.Name == "" {
			r.Name = time.Now().UTC().Format(byMoment)
		}
		if err = s.changes.lock(by); err == nil {
			defer s.changes.changing.Unlock()
			out, err = s.changes.snapshot(by, together(volume, r.With), r.Name, hold)
		}
	}
	return out, notSnapshot(fmt.Sprintf("there is no snapshot %s of volume %s", r.Name, volume), err)
}

// snapshot keeps what volumes hold at one moment: all of them, or none. Commands are held
// for a time at most. The caller holds the changes.
func (a *applier) snapshot(by server.Asker, names []string, name string, longest time.Duration) (out control.SnapshotMade, err error) {
	var drafts []images.Draft
	defer func() {
		for _, d := range drafts {
			err = errors.Join(err, d.Discard())
		}
	}()
	var all []images.Images
	for _, volume := range names {
		v, of, err := a.imagesOf(volume)
		if err == nil && v.ReadOnly {
			err = errors.New("it is read-only: what it holds does not change")
		}
		if err == nil {
			err = a.daemon.assembly.Still(v)
		}
		var d images.Draft
		if err == nil {
			d, err = of.Begin(name)
		}
		if err != nil {
			return out, fmt.Errorf("volume %s: %w", volume, err)
		}
		drafts, all = append(drafts, d), append(all, of)
	}
	f := newFreeze(names, longest)
	ended := by.Awaits(a.freezing(names))
	held, err := a.take(f, drafts)
	ended()
	if err != nil {
		return out, err
	}
	for i, d := range drafts {
		if err := d.Keep(f.At); err != nil {
			for _, of := range all[:i+1] {
				if gone := of.Remove(name); !errors.Is(gone, images.ErrNone) {
					err = errors.Join(err, gone)
				}
			}
			return out, fmt.Errorf("volume %s: %w", names[i], err)
		}
	}
	out = control.SnapshotMade{Name: name, Volumes: names, At: f.At, Held: held.Round(10 * time.Microsecond).String()}
	a.snapshots.changed(names...)
	a.log.Info("snapshot made", "snapshot", name, "volumes", strings.Join(names, ", "), "at", f.At, "commands were held for", held)
	return out, nil
}

var errServed = errors.New("it is served")

// DeleteSnapshot implements server.Source.
func (s *source) DeleteSnapshot(by server.Asker, volume, snapshot string) (out control.Snapshot, err error) {
	if err = s.changes.lock(by); err == nil {
		defer s.changes.changing.Unlock()
		out, err = s.changes.deleteSnapshot(volume, snapshot)
	}
	return out, notSnapshot(fmt.Sprintf("snapshot %s of volume %s was not deleted", snapshot, volume), err)
}

// deleteSnapshot is called by who holds the changes.
func (a *applier) deleteSnapshot(volume, snapshot string) (out control.Snapshot, err error) {
	_, of, err := a.imagesOf(volume)
	if err != nil {
		return out, err
	}
	i, err := imageOf(of, snapshot)
	if err != nil {
		return out, err
	}
	if out = snapshotOf(i, a.served()); out.Used != "" {
		return out, fmt.Errorf("%w as volume %s: delete that first (lunar volume delete %s)", errServed, out.Used, out.Used)
	}
	if err := of.Remove(snapshot); err != nil {
		return out, err
	}
	a.snapshots.changed(volume)
	a.log.Info("snapshot deleted", "snapshot", snapshot, "volume", volume)
	return out, nil
}
