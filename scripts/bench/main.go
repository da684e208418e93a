// Command bench measures lunar's tgtd against C tgt in one run: both serve from
// CPU 0, a client drives them from CPU 1 in turns, and medians and ratios go
// into docs/reports/performance.md, those of the block cache with what the parts of the
// cache cost into docs/reports/performance-cache.md.
//
// The machine is expected to be noisy. So every repeat runs each workload on
// both servers one after the other, and a ratio is the median of the ratios of
// those pairs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// options is the command line.
type options struct {
	Tgtd     string   `type:"existingfile" help:"lunar's tgtd."`
	Tgtload  string   `type:"existingfile" help:"The load generator."`
	Repeats  int      `help:"Repeats per workload, instead of the mode's."`
	Only     []string `help:"Names of workloads to run; the document is left alone."`
	Server   int      `default:"0" help:"CPU of the servers."`
	Client   int      `default:"1" help:"CPU of the client."`
	Realtime bool     `help:"Run servers and client in the real-time class, for figures from a machine that others use; needs root and starves the others."`
	Profile  bool     `default:"true" negatable:"" help:"Record a profile of lunar's tgtd under load."`

	Servers serversCommand `cmd:"" default:"withargs" help:"The whole target, both servers on tmpfs (the default)."`
	Builds  buildsCommand  `cmd:"" help:"Two builds of lunar's tgtd: whether a change has cost speed."`
	Ladder  ladderCommand  `cmd:"" help:"Batching: off, static and adaptive, from 1 to 512 requests at a time."`
	Scaling scalingCommand `cmd:"" help:"Logical units, connections, and what garbage collection costs with a large cache and many sessions."`
	Cache   cacheCommand   `cmd:"" help:"The block cache."`
	QoS     qosCommand     `cmd:"" name:"qos" help:"The token scheduler: reservations and limits of ten initiators."`
	ISER    iserCommand    `cmd:"" name:"iser" help:"iSER and TCP of lunar, C tgt and LIO in a guest of the lab."`
	Soak    soakCommand    `cmd:"" help:"Half an hour at full load with every byte checked: does the process grow?"`

	LoopServe loopServe `cmd:"" hidden:""`
	LoopDrive loopDrive `cmd:"" hidden:""`
}

// plan is how long a mode measures.
type plan struct {
	repeats         int
	warmup, runtime time.Duration
	tries           int // of a pair that others disturb; the quietest counts
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

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("bench"), kong.Description("Measure lunar's tgtd against C tgt."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	line.BindTo(ctx, (*context.Context)(nil))
	if err := line.Run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// place is the start of a command line that runs on one CPU.
func (o *options) place(cpu int) []string {
	return append([]string{"taskset", "-c", strconv.Itoa(cpu)}, o.class()...)
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
	c := client{path: o.Tgtload, cpu: o.Client, place: o.place(o.Client), plan: p}
	if o.Realtime {
		c.before = []string{"chrt", "--fifo", "2"}
	}
	return c
}

// record prints the sections in order, and stores them when all workloads ran.
func (o *options) record(document string, order []string, sections map[string]string) error {
	for _, name := range order {
		fmt.Println(sections[name])
	}
	if document == "" || len(o.Only) > 0 {
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
