// Command snapshots makes snapshots of volumes that are written to, kills the server amid
// them, holds each image against a ledger of its own, measures clones, pauses and space, and
// writes docs/reports/snapshots.md.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// check measures one thing. A row in checks is all that a new one needs.
type check struct {
	name, title string
	run         func(context.Context, options) (result, error)
}

var checks = []check{
	{"xfs", "Snapshots under load, with kills, on xfs", func(ctx context.Context, o options) (result, error) { return kills(ctx, o, "xfs", o.Snapshots) }},
	{"btrfs", "Snapshots under load, with kills, on btrfs", func(ctx context.Context, o options) (result, error) { return kills(ctx, o, "btrfs", o.Snapshots/5) }},
	{"rollbacks", "Rollbacks, with kills", rollbacks},
	{"clones", "Clones of a large volume", clones},
	{"pauses", "For how long commands are held", pauses},
	{"space", "Space", space},
}

//go:embed snapshots.md.tmpl
var page string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("snapshots"), kong.Description("Check snapshots of volumes that are written to."))
	line.FatalIfErrorf(o.measure())
}

func (o options) measure() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	results, err := notes.Read[result](o.Notes)
	if err != nil {
		return err
	}
	version, err := daemon.Version(o.Tgtd)
	if err != nil {
		return err
	}
	bad := 0
	for _, c := range checks {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.name) {
			continue
		}
		r, err := c.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, row := range r.Rows {
			fmt.Printf("%s: %q\n", c.name, row)
		}
		for _, f := range r.Facts {
			fmt.Printf("%s: %s: %s (%t)\n", c.name, f.Name, f.Value, f.Good)
			if !f.Good {
				bad++
			}
		}
		r.Title, r.Version, r.At = c.title, version, time.Now().UTC().Format(time.DateOnly)
		r.Machine = fmt.Sprintf("%d CPUs, %s", runtime.NumCPU(), runtime.GOARCH)
		results[c.name] = r
	}
	if err := notes.Write(o.Notes, results); err != nil {
		return err
	}
	var all []result
	for _, c := range checks {
		if r, ok := results[c.name]; ok {
			all = append(all, r)
		}
	}
	if err := notes.Render(o.To, page, all); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("found %d facts that are not as they have to be", bad)
	}
	return nil
}
