// Command security attacks the real binary in every way that docs/security.md speaks of,
// while a canary with a target, a secret and a volume of its own works beside, and writes
// docs/reports/security-evidence.md of what the canary noticed and the attacker got. It shares no
// code with the server but the initiator of its tests, which shares none with it either.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// options is the command line.
type options struct {
	Run      runCommand      `cmd:"" help:"Attack a server, and note what came of it."`
	Attack   attackCommand   `cmd:"" hidden:"" help:"Be the attacker."`
	Document documentCommand `cmd:"" help:"Write the document from the notes."`
}

// runCommand says what is done and for how long.
type runCommand struct {
	Tgtd    string   `required:"" type:"existingfile" help:"The server."`
	Notes   string   `default:"docs/reports/security-evidence/after.json" help:"Where results are noted; those of attacks that do not run stay."`
	Only    []string `help:"Names of attacks to run."`
	Phases  int      `default:"3" help:"How often the canary is watched alone and with the attack."`
	Seconds float64  `default:"3" help:"How long each time."`
	Minutes float64  `help:"Of each kind of fuzzing; 0 leaves it out."`
	Guided  float64  `help:"Seconds of each coverage-guided fuzzer of Go; 0 leaves them out."`
	Busy    bool     `help:"The machine has other work: what needs the clock is neither judged nor noted. Fuzzing adds up all the same."`
	Scale   bool     `help:"Measure 1,000 sessions, 10,000 connections and 256 LUs, and a login storm, too."`
	Seed    uint64   `help:"Of all that is drawn; another one each time if it is 0."`

	ctx     context.Context
	version string
	settle  time.Duration // how long an attack goes on before it is watched
	timed   bool          // the clock judges too
}

// errBroken is a promise that does not hold.
var errBroken = errors.New("promises were broken")

// Run implements a command of kong.
func (r *runCommand) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r.ctx, r.settle, r.timed = ctx, settleTime, !r.Busy
	if r.Seed == 0 {
		r.Seed = uint64(time.Now().UnixNano())
	}
	if err := canary.StepAside(); err != nil {
		return err
	}
	var err error
	if r.version, err = daemon.Version(r.Tgtd); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "security-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	broken := 0
	for _, a := range everything() {
		if len(r.Only) > 0 && !slices.Contains(r.Only, a.name) || a.fuzzes && r.Minutes == 0 {
			continue
		}
		found, err := r.besiege(a, filepath.Join(dir, a.name))
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		broken += min(1, len(found.Failed))
		if err := r.tell(a, found); err != nil {
			return err
		}
	}
	if r.Guided > 0 {
		found, err := r.guidedFuzzing(r.Guided)
		if err != nil {
			return err
		}
		broken += min(1, len(found.Failed))
		if err := r.tell(guided, found); err != nil {
			return err
		}
	}
	if r.Scale {
		if err := r.scale(dir); err != nil {
			return err
		}
	}
	if r.Scale || slices.Contains(r.Only, storm.name) {
		found, err := r.stormOf(filepath.Join(dir, storm.name), stormSessions)
		if err != nil {
			return fmt.Errorf("%s: %w", storm.name, err)
		}
		broken += min(1, len(found.Failed))
		if err := r.tell(storm, found); err != nil {
			return err
		}
	}
	if broken > 0 {
		return fmt.Errorf("%w by %d attacks (seed %d)", errBroken, broken, r.Seed)
	}
	return nil
}

// tell says and notes what came of an attack.
func (r *runCommand) tell(a attack, found outcome) error {
	found.Version, found.Date = r.version, time.Now().UTC().Format("2006-01-02")
	fmt.Printf("%s: latency %.2f, throughput %.2f, %v\n", a.name, found.Latency, found.Throughput, found.Figures)
	for _, f := range slices.Concat(found.Failed, found.Seen) {
		fmt.Println("  ", f)
	}
	return r.note(a, found)
}

// note adds a result to the file.
func (r *runCommand) note(a attack, found outcome) error {
	results, err := notes.Read[outcome](r.Notes)
	if err != nil {
		return err
	}
	if a.fuzzes {
		found = sumOfFuzzing(results[a.name], found, r.Busy)
	} else if r.Busy {
		return nil
	}
	results[a.name] = found
	return errors.Join(notes.Write(r.Notes, results), keep(a.name, found.seeds))
}

// sumOfFuzzing adds a run to those before: what it took, its inputs and, from a busy
// machine, what was wrong. What the canary saw is that of the last run on a quiet one.
func sumOfFuzzing(before, found outcome, busy bool) outcome {
	found.Fuzzed = found.Version + ", " + found.Date
	found.CPUSeconds += before.CPUSeconds
	found.Figures[inputs] += before.Figures[inputs]
	if busy {
		found.BusySeconds = found.CPUSeconds - before.CPUSeconds
	}
	found.BusySeconds += before.BusySeconds
	if !busy || before.Version == "" {
		return found
	}
	sum := before
	sum.Fuzzed, sum.CPUSeconds, sum.BusySeconds, sum.seeds = found.Fuzzed, found.CPUSeconds, found.BusySeconds, found.seeds
	sum.Figures = maps.Clone(before.Figures)
	sum.Figures[inputs] = found.Figures[inputs]
	sum.Failed = slices.Concat(before.Failed, found.Failed)
	return sum
}

// everything that can be run by name.
func everything() []attack {
	all := slices.Clone(attacks)
	for _, g := range grammars {
		all = append(all, fuzzing(g))
	}
	return all
}

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("security"), kong.Description("Show that strangers and neighbours get nothing, and stop nobody."))
	line.FatalIfErrorf(line.Run())
}
