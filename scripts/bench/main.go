// Command bench measures lunar's tgtd against C tgt in one run: both serve a
// file of the same size in /dev/shm from CPU 0, tgtload drives them from CPU 1
// in turns, and medians and ratios go into docs/performance.md.
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

type options struct {
	Mode     string   `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: short runs; full: for the record."`
	Tgtd     string   `required:"" type:"existingfile" help:"lunar's tgtd."`
	Tgtload  string   `required:"" type:"existingfile" help:"The load generator."`
	Document string   `default:"docs/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Repeats  int      `help:"Repeats per workload, instead of the mode's."`
	Only     []string `help:"Names of workloads to run; the document is left alone."`
	Server   int      `default:"0" help:"CPU of the servers."`
	Client   int      `default:"1" help:"CPU of the client."`
	Realtime bool     `help:"Run servers and client in the real-time class, for figures from a machine that others use; needs root and starves the others."`
	Profile  bool     `default:"true" negatable:"" help:"Record a profile of lunar's tgtd under load."`
}

// plan is how long a mode measures.
type plan struct {
	repeats         int
	warmup, runtime time.Duration
	tries           int // of a pair that others disturb; the quietest counts
}

var plans = map[string]plan{
	"quick": {5, 200 * time.Millisecond, 500 * time.Millisecond, 4},
	"full":  {7, 500 * time.Millisecond, 2 * time.Second, 4},
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("bench"), kong.Description("Measure lunar's tgtd against C tgt."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// place is the start of a command line that runs on one CPU.
func (o options) place(cpu int) []string {
	line := []string{"taskset", "-c", strconv.Itoa(cpu)}
	if o.Realtime {
		line = append(line, "chrt", "--fifo", "1")
	}
	return line
}

func run(ctx context.Context, o options) error {
	p := plans[o.Mode]
	if o.Repeats > 0 {
		p.repeats = o.Repeats
	}
	if o.Realtime {
		p.tries = 1
	}
	workloads, err := selected(o.Only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "lunar-bench-")
	if err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	defer os.RemoveAll(dir)
	servers, err := startServers(ctx, o, dir)
	defer stopServers(servers)
	if err != nil {
		return err
	}
	client := client{path: o.Tgtload, cpu: o.Client, place: o.place(o.Client), plan: p}
	samples, err := client.measure(ctx, servers, workloads)
	if err != nil {
		return err
	}
	return o.write(ctx, client, servers, samples, workloads)
}

// write prints the tables, and stores them when all workloads ran.
func (o options) write(ctx context.Context, c client, servers []*server, s samples, workloads []workload) error {
	sections := map[string]string{"table": machine(o, c.plan, s) + requirementTable(s) + detailTable(s, workloads)}
	if o.Profile {
		profile, err := c.profile(ctx, servers[lunar])
		if err != nil {
			profile = fmt.Sprintf("No profile: %v.\n", err)
		}
		sections["profile"] = profile
	}
	fmt.Print(sections["table"], "\n", sections["profile"])
	if o.Document == "" || len(o.Only) > 0 {
		return nil
	}
	return updateDocument(o.Document, sections)
}
