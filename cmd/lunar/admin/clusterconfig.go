package admin

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// inCluster makes a text the configuration of all nodes.
func (k applyCommand) inCluster(ctx context.Context, c cli.Console, text string) error {
	return k.ask(func(api *control.Client) error {
		return appliedInCluster(ctx, c, api, control.ClusterFile{Name: k.Config, Text: text, DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink}, k.Allowances, k.command)
	})
}

// appliedInCluster asks for another revision, and prints what comes of it.
func appliedInCluster(ctx context.Context, c cli.Console, api *control.Client, f control.ClusterFile, with control.Allowances, command func(control.Allowances) string) error {
	applied, err := api.ApplyInCluster(ctx, f)
	if err != nil {
		return advisedBy(err, with, command)
	}
	if applied.Unchanged {
		fmt.Fprintf(c.Out, "It is revision %d already, by which all nodes go. Nothing was changed.\n", applied.Revision)
		return nil
	}
	behind := 0
	for i := range applied.Nodes {
		if tellVerdict(c, &applied.Nodes[i], f.DryRun); !applied.Nodes[i].Applied {
			behind++
		}
	}
	if f.DryRun {
		fmt.Fprintf(c.Out, "It would be revision %d. Nothing was changed.\n", applied.Revision)
		return lackingInCluster(&applied, with, command)
	}
	fmt.Fprintf(c.Out, "It is revision %d, which nodes that are away get when they come back.\n", applied.Revision)
	if behind > 0 {
		return fmt.Errorf("%s of %d not gone by it yet: lunar cluster status tells more", cli.Counted(behind, "node"), len(applied.Nodes))
	}
	return nil
}

// lackingInCluster is an error for a dry run that found permissions missing.
func lackingInCluster(applied *control.ClusterApplied, with control.Allowances, command func(control.Allowances) string) error {
	missing := false
	for _, n := range applied.Nodes {
		more, some := lacking(with, &control.Applied{Impacts: n.Impacts})
		if some {
			with, missing = more, true
		}
	}
	if missing {
		return destructive("it would be refused; to do it: %s", command(with))
	}
	return nil
}

// tellVerdict prints what a revision changes on a node.
func tellVerdict(c cli.Console, v *control.ClusterVerdict, dry bool) {
	for _, w := range v.Warnings {
		fmt.Fprintf(c.Err, "warning: node %s: %s\n", v.Node, iscsiname.Printable(w))
	}
	state := ""
	switch {
	case dry:
	case v.Applied:
		state = ", in force"
	case v.Behind != "":
		state = ", NOT in force: " + iscsiname.Printable(v.Behind)
	default:
		state = ", not in force yet"
	}
	fmt.Fprintf(c.Out, "node %s: %s%s\n", v.Node, cli.Counted(len(v.Changes), "change"), state)
	for _, change := range v.Changes {
		fmt.Fprintf(c.Out, "  %s %s\n", signOf(change), iscsiname.Printable(change))
	}
	tellImpacts(c, v.Impacts)
}

type clusterConfigCommand struct {
	Show     clusterConfigShowCommand     `cmd:"" help:"Print the text of a revision, without secrets. Change it and give it to lunar apply --cluster: secrets stay as they are."`
	History  clusterConfigHistoryCommand  `cmd:"" help:"List the last revisions: who made them, when and how."`
	Rollback clusterConfigRollbackCommand `cmd:"" help:"Make an earlier revision the newest again, on all nodes."`
}

type clusterConfigShowCommand struct {
	asking   `embed:""`
	output   `embed:""`
	Revision int64 `arg:"" optional:"" help:"Number of a revision. Default: that which is in force on this node."`
}

// Run prints a revision.
func (k clusterConfigShowCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return printed(ctx, &k.output, api, c, control.ClusterConfigPath+"/"+strconv.FormatInt(k.Revision, 10), func(w io.Writer, r *control.ClusterRevision) error {
			_, err := io.WriteString(w, r.Text)
			return err
		})
	})
}

type clusterConfigHistoryCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

// Run lists the last revisions.
func (k clusterConfigHistoryCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.ClusterConfigPath, rowsOf[control.ClusterRevisionList, control.ClusterRevision]{
			rows: func(l *control.ClusterRevisionList) []control.ClusterRevision { return l.Revisions },
			document: func(_ *control.ClusterRevisionList, rows []control.ClusterRevision) any {
				return control.ClusterRevisionList{Revisions: rows}
			},
			table: revisionTable,
		})
	})
}

var revisionTable = listing.Table[control.ClusterRevision]{
	{Name: "revision", Of: func(r *control.ClusterRevision) any { return r.Revision }},
	{Name: "at", Of: func(r *control.ClusterRevision) any { return r.At }},
	{Name: "now", Of: func(r *control.ClusterRevision) any { return r.Now }},
	{Name: "by", Of: func(r *control.ClusterRevision) any { return iscsiname.Printable(r.By) }},
	{Name: "node", Of: func(r *control.ClusterRevision) any { return r.Node }},
	{Name: "what", Of: func(r *control.ClusterRevision) any { return iscsiname.Printable(r.What) }},
}

type clusterConfigRollbackCommand struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	Revision           int64 `arg:"" help:"Number of a revision (lunar cluster config history)."`
	DryRun             bool  `short:"n" help:"Show the changes without making them. Exit status 3: one of them needs a permission."`
}

// Run makes an earlier revision the newest.
func (k clusterConfigRollbackCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return appliedInCluster(ctx, c, api, control.ClusterFile{Name: "the revision", Rollback: k.Revision, DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink}, k.Allowances, k.command)
	})
}

func (k clusterConfigRollbackCommand) command(with control.Allowances) string {
	return with.Command(k.StateDir, k.Socket, "cluster", "config", "rollback", strconv.FormatInt(k.Revision, 10))
}
