// Command bulk measures moves of volumes between two servers beside scp and rsync, kills
// servers amid moves, notes the results and writes docs/reports/bulk-moves.md.
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
	{"memory", "Files in memory", func(ctx context.Context, o options) (result, error) { return compare(ctx, o, o.Memory) }},
	{"disk", "Files on a disk", func(ctx context.Context, o options) (result, error) { return compare(ctx, o, o.Disk) }},
	{"staged", "Stages beside one thread", staged},
	{"kills", "Kills", kills},
}

//go:embed bulk-moves.md.tmpl
var page string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("bulk"), kong.Description("Measure moves of volumes between servers."))
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
