// Command cluster measures the state that servers of a cluster have together, on members of
// its own etcd as processes of this machine, and writes docs/reports/cluster.md.
package main

import (
	"context"
	_ "embed"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/notes"
)

type options struct {
	LunarEtcd string   `required:"" type:"path" placeholder:"FILE" help:"The program lunar-etcd."`
	Notes     string   `default:"docs/reports/cluster/results.json" help:"Results, by check."`
	To        string   `default:"docs/reports/cluster.md" help:"The document."`
	Only      []string `help:"Some of the checks."`
	Kills     int      `default:"20" help:"Kills of etcd's leader."`
	Seconds   int      `default:"10" help:"For how long commits are measured."`
}

// checks measure one thing each.
var checks = []notes.Check[options]{
	{Name: "one", Title: "Commits, one member", Run: func(ctx context.Context, o options) (notes.Result, error) { return commits(ctx, o, 1) }},
	{Name: "three", Title: "Commits, three members", Run: func(ctx context.Context, o options) (notes.Result, error) { return commits(ctx, o, 3) }},
	{Name: "leaders", Title: "Kills of etcd's leader", Run: leaders},
	{Name: "leases", Title: "Ends of leases", Run: leases},
}

//go:embed cluster.md.tmpl
var page string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("cluster"), kong.Description("Measure the state that servers of a cluster have together."))
	line.FatalIfErrorf(notes.Measure(notes.Report{Tgtd: o.LunarEtcd, Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, o, checks))
}
