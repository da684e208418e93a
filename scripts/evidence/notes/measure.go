package notes

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/daemon"
)

// Fact is something that has to be so, with what was found.
type Fact struct {
	Name, Value string
	Good        bool // it is as it has to be
}

// Found is a Fact.
func Found(name, value string, good bool) Fact { return Fact{name, value, good} }

// Result is what is noted of a check.
type Result struct {
	Title, Version, Machine, At string
	How                         string     `json:",omitempty"` // it was measured
	Columns                     []string   `json:",omitempty"`
	Rows                        [][]string `json:",omitempty"`
	Facts                       []Fact
}

// Check measures one thing, as options say.
type Check[O any] struct {
	Name, Title string
	Run         func(context.Context, O) (Result, error)
}

// Facts is the Run of a check that finds facts alone.
func Facts[O any](find func(context.Context, O) ([]Fact, error)) func(context.Context, O) (Result, error) {
	return func(ctx context.Context, o O) (Result, error) {
		found, err := find(ctx, o)
		return Result{Facts: found}, err
	}
}

// Report says of what checks are and where their results go.
type Report struct {
	Tgtd  string   // the server's binary
	Notes string   // results, by check
	To    string   // the document
	Page  string   // a text/template of it, whose contents are Results
	Only  []string // some of the checks; nil: all
}

// Measure makes the checks until an interrupt or SIGTERM comes, notes what each finds beside
// what was noted of the others, and writes the document after each, so that no later check
// loses it. The error also tells of facts that are not as they have to be.
func Measure[O any](r Report, o O, checks []Check[O]) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := Read[Result](r.Notes)
	if err != nil {
		return err
	}
	version, err := daemon.Version(r.Tgtd)
	if err != nil {
		return err
	}
	bad := 0
	for _, c := range checks {
		if len(r.Only) > 0 && !slices.Contains(r.Only, c.Name) {
			continue
		}
		machine := fmt.Sprintf("%d CPUs, %s, load average %s when it began", runtime.NumCPU(), runtime.GOARCH, loadAverage())
		began := time.Now()
		found, err := c.Run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		machine += fmt.Sprintf(", %v long", time.Since(began).Round(time.Second))
		bad += found.tell(c.Name)
		found.Title, found.Version, found.Machine, found.At = c.Title, version, machine, time.Now().UTC().Format(time.DateOnly)
		results[c.Name] = found
		if err := keep(r, checks, results); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("found %d facts that are not as they have to be", bad)
	}
	return nil
}

// keep writes the notes, and the document of them in the order of the checks.
func keep[O any](r Report, checks []Check[O], results map[string]Result) error {
	if err := Write(r.Notes, results); err != nil {
		return err
	}
	var all []Result
	for _, c := range checks {
		if found, ok := results[c.Name]; ok {
			all = append(all, found)
		}
	}
	return Render(r.To, r.Page, all)
}

// tell prints what a check has found, and counts what is not as it has to be.
func (r *Result) tell(check string) (bad int) {
	for _, row := range r.Rows {
		fmt.Printf("%s: %q\n", check, row)
	}
	for _, f := range r.Facts {
		verdict := ""
		if !f.Good {
			verdict = ", WHICH IS NOT AS IT HAS TO BE"
			bad++
		}
		fmt.Printf("%s: %s: %s%s\n", check, f.Name, f.Value, verdict)
	}
	return bad
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
