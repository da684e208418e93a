// Command bench measures lunar's tgtd beside a bare echo, SPDK, C tgt and fio in one
// run: all serve from CPU 0, a client that sleeps drives them from CPU 1 in turns, and
// medians and ratios go into docs/reports/performance*.md.
//
// The machine is expected to be noisy. So every repeat runs each workload on all of
// them one after the other, and a ratio is the median of the ratios within repeats.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commandLine is the options and the commands.
type commandLine struct {
	options

	Servers serversCommand     `cmd:"" default:"withargs" help:"Whole targets in memory (the default)."`
	Builds  buildsCommand      `cmd:"" help:"Two builds of lunar's tgtd: whether a change has cost speed."`
	Ladder  ladderCommand      `cmd:"" help:"Two builds of lunar's tgtd, from 1 to 512 requests at a time."`
	Scaling scalingCommand     `cmd:"" help:"Logical units, connections, and what garbage collection costs with a large cache and many sessions."`
	Disk    diskCommand        `cmd:"" help:"Whole targets on a disk, directly and through the cache."`
	Polling pollingCommand     `cmd:"" help:"Settings of lunar for threads without work, on a disk and in memory."`
	Cache   cacheCommand       `cmd:"" help:"The parts of the block cache."`
	QoS     qosCommand         `cmd:"" name:"qos" help:"The token scheduler: reservations and limits of ten initiators."`
	ISER    iserCommand        `cmd:"" name:"iser" help:"iSER and TCP of lunar, C tgt and LIO in a guest of the lab."`
	Promise iserPromiseCommand `cmd:"" name:"iser-promises" help:"A reservation over iSER in a guest of the lab."`
	Soak    soakCommand        `cmd:"" help:"Half an hour at full load with every byte checked: does the process grow?"`
}

func main() {
	var o commandLine
	line := kong.Parse(&o, kong.Name("bench"), kong.Description("Measure lunar's tgtd beside others."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	line.BindTo(ctx, (*context.Context)(nil))
	if err := o.run(line); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run executes the command with a work directory.
func (o *options) run(line *kong.Context) (err error) {
	if o.work, err = os.MkdirTemp("/dev/shm", "lunar-bench-"); err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	defer os.RemoveAll(o.work)
	return line.Run(o)
}
