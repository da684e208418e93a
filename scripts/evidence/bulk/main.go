// Command bulk measures moves of volumes between two servers beside scp and rsync, kills
// servers amid moves, notes the results and writes docs/reports/bulk-moves.md.
package main

import (
	"context"
	_ "embed"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/notes"
)

// checks measure one thing each. A row is all that a new one needs.
var checks = []notes.Check[options]{
	{Name: "memory", Title: "Files in memory", Run: func(ctx context.Context, o options) (result, error) { return compare(ctx, o, o.Memory) }},
	{Name: "disk", Title: "Files on a disk", Run: func(ctx context.Context, o options) (result, error) { return compare(ctx, o, o.Disk) }},
	{Name: "staged", Title: "Stages beside one thread", Run: staged},
	{Name: "kills", Title: "Kills", Run: kills},
}

//go:embed bulk-moves.md.tmpl
var page string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("bulk"), kong.Description("Measure moves of volumes between servers."))
	line.FatalIfErrorf(notes.Measure(notes.Report{Tgtd: o.Tgtd, Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, o, checks))
}
