// Command snapshots makes snapshots of volumes that are written to, kills the server amid
// them, holds each image against a ledger of its own, measures clones, pauses and space, and
// writes docs/reports/snapshots.md.
package main

import (
	"context"
	_ "embed"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/notes"
)

// checks measure one thing each. A row is all that a new one needs.
var checks = []notes.Check[options]{
	{Name: "xfs", Title: "Snapshots under load, with kills, on xfs", Run: func(ctx context.Context, o options) (result, error) { return kills(ctx, o, "xfs", o.Snapshots) }},
	{Name: "btrfs", Title: "Snapshots under load, with kills, on btrfs", Run: func(ctx context.Context, o options) (result, error) { return kills(ctx, o, "btrfs", o.Snapshots/5) }},
	{Name: "rollbacks", Title: "Rollbacks, with kills", Run: func(ctx context.Context, o options) (result, error) { return rollbacks(ctx, o, "") }},
	{Name: "protected", Title: "Rollbacks of volumes with protection information, with kills", Run: func(ctx context.Context, o options) (result, error) { return rollbacks(ctx, o, protected) }},
	{Name: "images", Title: "Rollbacks of an image of a Ceph cluster, with kills", Run: imageRollbacks},
	{Name: "clones", Title: "Clones of a large volume", Run: clones},
	{Name: "pauses", Title: "For how long commands are held", Run: pauses},
	{Name: "full", Title: "Snapshots on a full disk, with a kill", Run: full},
	{Name: "space", Title: "Space", Run: space},
}

// protected are keys of volumes with protection information.
const protected = ", protection: 1"

//go:embed snapshots.md.tmpl
var page string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("snapshots"), kong.Description("Check snapshots of volumes that are written to."))
	line.FatalIfErrorf(notes.Measure(notes.Report{Tgtd: o.Tgtd, Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, o, checks))
}
