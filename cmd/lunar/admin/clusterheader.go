package admin

import (
	"context"
	"fmt"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/cluster/member"
	"lunar/cluster/seal"
	"lunar/internal/cli"
)

type clusterHeaderCommand struct {
	Save    clusterHeaderSaveCommand    `cmd:"" help:"Write a copy of a volume's header to a file. With the volume's key file it opens a copy of its data."`
	Restore clusterHeaderRestoreCommand `cmd:"" help:"Store a copy as the header of a volume that has none in the cluster's state."`
	Remove  clusterHeaderRemoveCommand  `cmd:"" help:"Remove a volume's header from the cluster's state while no node has the volume. Without a copy its data are lost."`
}

// headerOf is a volume's header in the state of the cluster that the node belongs to.
type headerOf struct {
	memberDir `embed:""`
	Volume    string `arg:"" help:"Name of the volume."`
}

// on does something with the header, and prints what was done.
func (k headerOf) on(c cli.Console, do func(seal.Of) (string, error)) error {
	return k.ask(func(_ member.Dir, s member.Settings, state *etcd.State) error {
		did, err := do(seal.Of{State: state, Keys: cluster.KeysOf(s.Cluster), Volume: k.Volume})
		if err != nil {
			return fmt.Errorf("volume %s: %w", k.Volume, err)
		}
		_, err = fmt.Fprintln(c.Out, did)
		return err
	})
}

type clusterHeaderSaveCommand struct {
	headerOf `embed:""`
	File     string `arg:"" type:"path" help:"File to write."`
}

// Run writes a copy of a header.
func (k clusterHeaderSaveCommand) Run(ctx context.Context, c cli.Console) error {
	return k.on(c, func(of seal.Of) (string, error) {
		return fmt.Sprintf("%s: the header of volume %s. It is out of date after a cryptographic erase", k.File, k.Volume), of.Save(ctx, k.File)
	})
}

type clusterHeaderRestoreCommand struct {
	headerOf `embed:""`
	File     string `arg:"" type:"path" help:"File that lunar cluster header save has written."`
}

// Run stores a copy.
func (k clusterHeaderRestoreCommand) Run(ctx context.Context, c cli.Console) error {
	return k.on(c, func(of seal.Of) (string, error) {
		return fmt.Sprintf("volume %s has the header of %s. Its next owner refuses it if it is not that of the image", k.Volume, k.File), of.Restore(ctx, k.File)
	})
}

type clusterHeaderRemoveCommand struct {
	headerOf `embed:""`
}

// Run removes a header.
func (k clusterHeaderRemoveCommand) Run(ctx context.Context, c cli.Console) error {
	return k.on(c, func(of seal.Of) (string, error) {
		return fmt.Sprintf("volume %s has no header in the cluster's state any more", k.Volume), of.Remove(ctx)
	})
}
