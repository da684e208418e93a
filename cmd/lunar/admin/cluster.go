package admin

import (
	"context"
	"fmt"
	"io"

	"lunar/cmd/lunar/clustertable"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type clusterCommand struct {
	Status clusterStatusCommand `cmd:"" help:"Show the nodes of the cluster, and who owns which volume."`
	Move   clusterMoveCommand   `cmd:"" help:"Give a volume to another node. Commands wait meanwhile, for some tenths of a second."`
	Drain  clusterDrainCommand  `cmd:"" help:"Let a node own no volumes, before it is serviced: those that it owns go to others. --off ends that."`
	Fence  clusterFenceCommand  `cmd:"" help:"Take the volumes of a node from it that does not give them away: Ceph refuses its writes from then on. It owns none until lunar cluster drain --off."`
	Log    clusterLogCommand    `cmd:"" help:"Show what has happened to this node in its cluster: volumes that it got and gave away, what failed."`

	Config clusterConfigCommand `cmd:"" help:"Show the configuration that the nodes have in common, and its last revisions. lunar apply --cluster changes it."`

	Init    clusterInitCommand    `cmd:"" help:"Make the first node of a new cluster: its member of the cluster's own etcd, in the state directory."`
	Token   clusterTokenCommand   `cmd:"" help:"Make and print a token by which one node can join. It is a secret."`
	Join    clusterJoinCommand    `cmd:"" help:"Make a node of a cluster that is there, by a token."`
	Leave   clusterLeaveCommand   `cmd:"" help:"Remove a node, living or dead, from the cluster's etcd."`
	Backup  clusterBackupCommand  `cmd:"" help:"Write the cluster's state to a file, without what ends with its nodes."`
	Restore clusterRestoreCommand `cmd:"" help:"Write the contents of a backup into a new cluster of the same name."`
	Header  clusterHeaderCommand  `cmd:"" help:"Copy the header of an encrypted volume out of the cluster's state, and back."`
}

type clusterStatusCommand struct {
	asking `embed:""`
	output `embed:""`
}

// Run prints what the node knows.
func (k clusterStatusCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return printed(ctx, &k.output, api, c, control.ClusterPath, tellCluster)
	})
}

// tellCluster prints what is so of all, nodes, volumes, and what nodes have of promises.
func tellCluster(out io.Writer, s *control.Cluster) error {
	for _, l := range clustertable.Lines(s) {
		if _, err := fmt.Fprintln(out, iscsiname.Printable(l.Text)); err != nil {
			return err
		}
	}
	section(out, clustertable.Nodes, s.Nodes, "")
	section(out, clustertable.Volumes, s.Volumes, "")
	if s.Promise != nil {
		section(out, clustertable.Parts, s.Promise.Nodes, "")
	}
	return nil
}

type clusterMoveCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of the volume."`
	Node   string `arg:"" help:"Node that is to own it."`
}

// Run moves a volume.
func (k clusterMoveCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		_, err := api.MoveInCluster(ctx, control.ClusterMove{Volume: k.Volume, Node: k.Node})
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "Volume %s is node %s's now.\n", k.Volume, k.Node)
		}
		return err
	})
}

type clusterDrainCommand struct {
	asking `embed:""`
	Node   string `arg:"" help:"Name of the node."`
	Off    bool   `help:"The node may own volumes again."`
}

// Run drains a node.
func (k clusterDrainCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		_, err := api.DrainInCluster(ctx, control.ClusterDrain{Node: k.Node, Off: k.Off})
		if err != nil {
			return err
		}
		said := fmt.Sprintf("Node %s owns no volumes, until lunar cluster drain --off %[1]s.", k.Node)
		if k.Off {
			said = fmt.Sprintf("Node %s may own volumes again.", k.Node)
		}
		_, err = fmt.Fprintln(c.Out, said)
		return err
	})
}

type clusterFenceCommand struct {
	asking `embed:""`
	Node   string `arg:"" help:"Name of the node."`
}

// Run fences a node.
func (k clusterFenceCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		_, err := api.FenceInCluster(ctx, control.ClusterFence{Node: k.Node})
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "Node %s can write to no volume that it had, and owns none until lunar cluster drain --off %[1]s.\n", k.Node)
		}
		return err
	})
}

type clusterLogCommand struct {
	asking `embed:""`
	Follow bool `short:"f" help:"Wait for more, until you interrupt it or the server ends."`
}

// Run prints events of the cluster.
func (k clusterLogCommand) Run(ctx context.Context, c cli.Console) error {
	return eventsCommand{asking: k.asking, Follow: k.Follow, Kind: []string{"cluster"}}.Run(ctx, c)
}
