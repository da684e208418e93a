// Command tgtsim runs the papers' experiments in virtual time against the real
// scheduler and cache code and prints what the papers report beside what was measured.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/alecthomas/kong"

	"lunar/scripts/sim/bulk"
	"lunar/scripts/sim/events"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/fussy"
	"lunar/scripts/sim/haechi"
	"lunar/scripts/sim/nest"
	"lunar/scripts/sim/net"
	"lunar/scripts/sim/numa"
	"lunar/scripts/sim/plm"
	"lunar/scripts/sim/pshift"
	"lunar/scripts/sim/tyche"
)

// errFailed ends the program with status 1 after the table has been printed.
var errFailed = errors.New("a check failed")

// version is set when linking: -ldflags "-X main.version=...".
var version = "development"

type options struct {
	List listCmd `cmd:"" help:"List the figures of the papers with what became of them, and the experiments: identifier, set-up, the paper's value, criterion."`
	Run  runCmd  `cmd:"" help:"Run experiments; exit status 1 when a check fails."`

	Page pageCmd `cmd:"" hidden:"" help:"Write the tables of docs/reports/simulation.md."`

	Version kong.VersionFlag `help:"Print the version."`
}

func main() {
	var o options
	ctx := kong.Parse(&o, kong.Name("tgtsim"),
		kong.Description("Simulate the experiments of the papers that the scheduler and the cache follow."), kong.UsageOnError(),
		kong.Vars{"version": "tgtsim " + version})
	if err := ctx.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "tgtsim:", err)
		os.Exit(1)
	}
}

// experiments returns every experiment, in the order of the papers.
func experiments() []experiment.Experiment {
	return slices.Concat(haechi.Experiments(), pshift.Experiments(), numa.Experiments(), fussy.Experiments(),
		tyche.Experiments(), events.Experiments(), plm.Experiments(), bulk.Experiments(), net.Experiments(), nest.Experiments())
}
