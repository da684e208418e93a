// Command evidence breaks the real binary in every way about which
// docs/reports/reliability.md makes a promise, compares the data served afterwards with a
// ledger of its own, and writes that document. It shares no code with the server but the
// initiator of its tests, which itself shares none with the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// options is the command line.
type options struct {
	Run      runCommand      `cmd:"" help:"Break a server, and note what came of it."`
	Document documentCommand `cmd:"" help:"Write the document from the notes."`
}

// runCommand counts; 0 leaves a check out.
type runCommand struct {
	Tgtd    string   `required:"" type:"existingfile" help:"The server."`
	Notes   string   `default:"docs/reports/reliability/after.json" help:"Where results are noted; those of checks that do not run stay."`
	Only    []string `help:"Names of checks to run."`
	Servers int      `default:"2" help:"Servers at a time at kill points."`
	Seed    uint64   `help:"Of all that is drawn; another one each time if it is 0."`

	Points         int `default:"10000" help:"Kill points."`
	Kills          int `default:"1000" help:"Kills at random."`
	Members        int `default:"300" help:"Kills of servers whose mirrors lack members."`
	Cuts           int `default:"200" help:"Losses of power on a file system in memory."`
	Ext4           int `name:"ext4" default:"200" help:"Losses of power on ext4, and as many without its journal."`
	Flips          int `default:"3000" help:"Bits."`
	Configurations int `default:"1000" help:"Malformed configurations."`

	ctx context.Context
}

// result is what came of a check.
type result struct {
	Figures string // rounds, cuts, flips, inputs
	Wrong   int
	Words   string   `json:",omitempty"` // what was wrong
	Detail  string   `json:",omitempty"` // a table
	Found   []string `json:",omitempty"` // the first things that were wrong
	Version string   // of the binary
	Date    string
}

// errBroken is a promise that does not hold.
var errBroken = errors.New("promises were broken")

// Run implements a command of kong.
func (r *runCommand) Run() error {
	results, err := notes.Read[result](r.Notes)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r.ctx = ctx
	if r.Seed == 0 {
		r.Seed = uint64(time.Now().UnixNano())
	}
	version, err := daemon.Version(r.Tgtd)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "evidence-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	broken := 0
	for _, c := range checks {
		if count := c.count(r); count > 0 && (len(r.Only) == 0 || slices.Contains(r.Only, c.name)) {
			found, err := c.run(r, filepath.Join(dir, c.name), count)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			found.Version, found.Date = version, time.Now().UTC().Format("2006-01-02")
			fmt.Printf("%s: %s; wrong: %d\n", c.name, found.Figures, found.Wrong)
			for _, f := range found.Found {
				fmt.Println(f)
			}
			broken += found.Wrong
			results[c.name] = found
			if err := notes.Write(r.Notes, results); err != nil {
				return err
			}
		}
	}
	if broken > 0 {
		return fmt.Errorf("%w: %d things were wrong (seed %d)", errBroken, broken, r.Seed)
	}
	return nil
}

// some keeps what fits into a note: of each the beginning, and the end, where a server says
// why it did not start.
func some(found []string) []string {
	const most, length = 8, 500
	found = slices.Clone(found[:min(len(found), most)])
	for i, f := range found {
		if len(f) > 2*length {
			found[i] = f[:length] + " ... " + f[len(f)-length:]
		}
	}
	return found
}

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("evidence"), kong.Description("Show that what is promised of data holds."))
	line.FatalIfErrorf(line.Run())
}
