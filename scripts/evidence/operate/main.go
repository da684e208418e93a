// Command operate measures how a server is operated, notes the results and writes
// docs/reports/operate.md.
package main

import (
	_ "embed"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/notes"
)

// commands are the command line.
type commands struct {
	Measure options      `cmd:"" default:"withargs" help:"Measure, note and write."`
	Drive   driveCommand `cmd:"" hidden:"" help:"Use the API of a server."`
	Fill    fillCommand  `cmd:"" hidden:"" help:"Fill disks of a server."`
}

// checks measure one thing each. A row is all that a new one needs.
var checks = []notes.Check[options]{
	{Name: "scale", Title: "Many objects, many changes", Run: notes.Facts(scale)},
	{Name: "stall", Title: "Calls beside I/O", Run: notes.Facts(stall)},
	{Name: "full", Title: "Full disks, and jobs of a server that is killed", Run: notes.Facts(full)},
	{Name: "migration", Title: "Disks that move from LIO and C tgt", Run: notes.Facts(migration)},
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
	return notes.Measure(notes.Report{Tgtd: o.Tgtd, Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, o, checks)
}
