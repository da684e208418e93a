package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// snapshotCommand has the commands of "lunar volume snapshot".
type snapshotCommand struct {
	Create   snapshotCreateCommand   `cmd:"" help:"Keep what volumes hold now as a snapshot, while initiators use them."`
	List     snapshotListCommand     `cmd:"" help:"List the snapshots of a volume, and what they take."`
	Clone    snapshotCloneCommand    `cmd:"" help:"Make a volume of a snapshot, at once and whatever its size, or serve the snapshot itself."`
	Rollback snapshotRollbackCommand `cmd:"" help:"Have a volume hold what it held at the moment of a snapshot. What it holds now is kept as a snapshot."`
	Delete   snapshotDeleteCommand   `cmd:"" help:"Delete a snapshot that nobody uses."`
}

// snapshotName is the arguments that name a snapshot.
type snapshotName struct {
	Volume   string `arg:"" help:"Name of the volume."`
	Snapshot string `arg:"" help:"Name of the snapshot (lunar volume snapshot list)."`
}

type snapshotCreateCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volumes      []string      `arg:"" help:"Names of volumes. Of several there are snapshots of one moment."`
	Name         string        `placeholder:"NAME" help:"What the snapshot is called; without it by the moment, such as 20261126T070000.000Z."`
	Deadline     time.Duration `default:"10s" help:"For how long commands are held at most; after that there is no snapshot. Mostly it takes some milliseconds."`
}

// Run makes snapshots.
func (k snapshotCreateCommand) Run(ctx context.Context, c cli.Console) error {
	r := control.SnapshotRequest{Name: k.Name, With: k.Volumes[1:], Deadline: k.Deadline.String()}
	return k.ask(func(api *control.Client) error {
		out, ended, err := made(ctx, k.asynchronous, api, c,
			func() (control.SnapshotMade, error) { return api.Snapshot(ctx, k.Volumes[0], r) },
			func() (control.Job, error) { return api.StartSnapshot(ctx, k.Volumes[0], r) })
		if err != nil || !ended {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "Snapshot %s: %s, as of %s. Commands were held for %s.\n", out.Name, strings.Join(out.Volumes, ", "), out.At.Local().Format(time.DateTime), out.Held)
		return err
	})
}

type snapshotListCommand struct {
	asking    `embed:""`
	selection `embed:""`
	Volume    string `arg:"" help:"Name of the volume."`
}

var snapshotsListed = rowsOf[control.SnapshotList, control.Snapshot]{
	rows: func(l *control.SnapshotList) []control.Snapshot { return l.Snapshots },
	document: func(_ *control.SnapshotList, rows []control.Snapshot) any {
		return control.SnapshotList{Snapshots: rows}
	},
	table: listing.Table[control.Snapshot]{
		{Name: "snapshot", Of: func(s *control.Snapshot) any { return s.Name }},
		{Name: "at", Of: func(s *control.Snapshot) any { return s.At.Local().Format(time.DateTime) }},
		{Name: "size", Of: func(s *control.Snapshot) any { return listing.Bytes(s.Size) }},
		{Name: "owned", Of: func(s *control.Snapshot) any { return bytesIfKnown(s.Owned) }},
		{Name: "shared", Of: func(s *control.Snapshot) any { return bytesIfKnown(s.Shared) }},
		{Name: "served-as", Of: func(s *control.Snapshot) any { return s.Used }},
		{Name: "path", Wide: true, Of: func(s *control.Snapshot) any { return s.Path }},
	},
}

func bytesIfKnown(n *int64) any {
	if n == nil {
		return nil
	}
	return listing.Bytes(*n)
}

// Run lists snapshots.
func (k snapshotListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.SnapshotsAt(k.Volume), snapshotsListed)
	})
}

type snapshotDeleteCommand struct {
	asking       `embed:""`
	snapshotName `embed:""`
}

// Run deletes a snapshot.
func (k snapshotDeleteCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		s, err := api.DeleteSnapshot(ctx, k.Volume, k.Snapshot)
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "Deleted: snapshot %s of volume %s, as of %s.\n", s.Name, k.Volume, s.At.Local().Format(time.DateTime))
		}
		return err
	})
}

type snapshotCloneCommand struct {
	changing     `embed:""`
	snapshotName `embed:""`
	As           string `arg:"" help:"Name of the new volume."`
	Path         string `placeholder:"PATH" help:"Its file, at the server, in the same file system; where nothing is. Of type rbd: its image. Without it: beside the volume's."`
	ReadOnly     bool   `help:"Serve it read-only: the snapshot itself, which takes nothing more, or a clone where it has protection information, is encrypted or an image of Ceph."`
	keyed        `embed:""`
}

// Run makes a volume of a snapshot.
func (k snapshotCloneCommand) Run(ctx context.Context, c cli.Console) error {
	config, err := k.object()
	if err != nil {
		return err
	}
	r := control.SnapshotClone{Volume: k.As, Path: k.Path, ReadOnly: k.ReadOnly, Configuration: config, Permissions: k.permissions()}
	return k.change(c, func(api *control.Client) (control.Changed, error) {
		out, err := api.CloneSnapshot(ctx, k.snapshotName.Volume, k.Snapshot, r)
		if err == nil && out.Took != "" {
			fmt.Fprintf(c.Out, "Volume %s: %s, made in %s.\n", k.As, iscsiname.Printable(out.Path), out.Took)
		}
		return out.Changed, err
	})
}

type snapshotRollbackCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	snapshotName `embed:""`
	Force        bool `help:"Roll back though sessions use the volume. Their hosts have other data cached than the volume has then: stop what uses it first."`
	Discard      bool `help:"Do not keep what the volume holds now."`
}

// Run rolls a volume back.
func (k snapshotRollbackCommand) Run(ctx context.Context, c cli.Console) error {
	r := control.SnapshotRollback{Force: k.Force, Discard: k.Discard}
	return k.ask(func(api *control.Client) error {
		out, ended, err := made(ctx, k.asynchronous, api, c,
			func() (control.RolledBack, error) { return api.RollBack(ctx, k.Volume, k.Snapshot, r) },
			func() (control.Job, error) { return api.StartRollBack(ctx, k.Volume, k.Snapshot, r) })
		if err != nil || !ended {
			return err
		}
		if out.Warning != "" {
			fmt.Fprintf(c.Err, "warning: %s\n", iscsiname.Printable(out.Warning))
		}
		kept := "What it held before is gone."
		if out.Kept != "" {
			kept = "What it held before is snapshot " + out.Kept + "."
		}
		_, err = fmt.Fprintf(c.Out, "Volume %s is as of %s. %s Commands were held for %s.\n", k.Volume, out.At.Local().Format(time.DateTime), kept, out.Held)
		return err
	})
}
