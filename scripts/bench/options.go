package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// options are those of all commands.
type options struct {
	Tgtd     string   `type:"existingfile" help:"lunar's tgtd."`
	Tgtload  string   `type:"existingfile" help:"The load generator."`
	Repeats  int      `help:"Repeats per workload, instead of the mode's."`
	Only     []string `help:"Names of workloads to run; the document is left alone without --samples."`
	Samples  string   `help:"File of samples: what is measured is added, and the tables are of all that is in it. So --only can measure a table in parts."`
	Data     int      `default:"1024" help:"Size of the data of each volume in memory, in MiB: more than any CPU cache holds."`
	SPDK     string   `name:"spdk" type:"existingfile" help:"SPDK's iscsi_tgt, to measure it beside. It needs root and two thousand MiB in huge pages."`
	Server   string   `default:"0" help:"CPU of the servers."`
	Client   int      `default:"1" help:"CPU of the client."`
	Realtime bool     `help:"Run servers and client in the real-time class, for figures from a machine that others use; needs root and starves the others."`
	Profile  bool     `default:"true" negatable:"" help:"Record a profile of lunar's tgtd under load."`

	work string // directory in memory for what servers need, removed at the end
}

// plan is how long a mode measures.
type plan struct {
	repeats         int
	warmup, runtime time.Duration
	tries           int // of a round that others disturb; the quietest counts
}

// adjusted is the plan as the command line changes it.
func (p plan) adjusted(o *options) plan {
	if o.Repeats > 0 {
		p.repeats = o.Repeats
	}
	if o.Realtime {
		p.tries = 1
	}
	return p
}

// place is the start of a command line that runs on one CPU.
func (o *options) place(cpu string) []string {
	return append([]string{"taskset", "-c", cpu}, o.class()...)
}

// class is the start of a command line in the scheduling class that was asked for.
func (o *options) class() []string {
	if o.Realtime {
		return []string{"chrt", "--fifo", "1"}
	}
	return nil
}

// client returns what drives the servers.
func (o *options) client(p plan) client {
	c := client{path: o.Tgtload, cpu: o.Client, place: o.place(strconv.Itoa(o.Client)), plan: p}
	if o.Realtime {
		c.before = []string{"chrt", "--fifo", "2"}
	}
	return c
}

// record prints the sections in order, and stores them unless they are of some
// workloads alone.
func (o *options) record(document string, order []string, sections map[string]string) error {
	if len(o.Only) > 0 && o.Samples == "" {
		document = ""
	}
	return store(document, order, sections)
}

// store prints the sections in order and writes them into the document.
func store(document string, order []string, sections map[string]string) error {
	for _, name := range order {
		fmt.Println(sections[name])
	}
	if document == "" {
		return nil
	}
	return updateDocument(document, sections)
}

// profiled is a profile of lunar's tgtd, or the reason why there is none.
func (o *options) profiled(ctx context.Context, c client, s *server, w workload) string {
	if !o.Profile {
		return "No profile was asked for.\n"
	}
	profile, err := c.profile(ctx, s, w)
	if err != nil {
		return fmt.Sprintf("No profile: %v.\n", err)
	}
	return profile
}
