// Command operate measures how a server is operated, notes the results and writes
// docs/reports/operate.md.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// commands are the command line.
type commands struct {
	Measure options      `cmd:"" default:"withargs" help:"Measure, note and write."`
	Drive   driveCommand `cmd:"" hidden:"" help:"Use the API of a server."`
	Fill    fillCommand  `cmd:"" hidden:"" help:"Fill disks of a server."`
}

// check measures one thing. A row in checks is all that a new one needs.
type check struct {
	name, title string
	run         func(context.Context, options) (facts, error)
}

// result is what is noted of a check.
type result struct {
	Title, Version, Machine, At string
	Facts                       facts
}

var checks = []check{
	{"scale", "Many objects, many changes", scale},
	{"stall", "Calls beside I/O", stall},
	{"full", "Full disks, and jobs of a server that is killed", full},
	{"migration", "Disks that move from LIO and C tgt", migration},
}

//go:embed operate.md.tmpl
var page string

func main() {
	var all commands
	line := kong.Parse(&all, kong.Name("operate"), kong.Description("Measure how a server is operated."))
	line.FatalIfErrorf(line.Run())
}

// Run implements a command of kong.
func (o options) Run() error {
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
		if len(o.Only) > 0 && !strings.Contains(","+strings.Join(o.Only, ",")+",", ","+c.name+",") {
			continue
		}
		load := loadAverage()
		found, err := c.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, f := range found {
			fmt.Printf("%s: %s: %s\n", c.name, f.Name, f.Value)
			if !f.Good {
				bad++
			}
		}
		results[c.name] = result{c.title, version, fmt.Sprintf("%d CPUs, %s, load average %s when it began", runtime.NumCPU(), runtime.GOARCH, load), time.Now().UTC().Format(time.DateOnly), found}
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

// loadAverage is that of the last minute: figures of a busy machine say little.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}
