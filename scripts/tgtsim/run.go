package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"lunar/scripts/sim/experiment"
)

type runCmd struct {
	IDs     []string `arg:"" name:"id" help:"Identifiers as listed, their first word (haechi, pshift, ...) or all."`
	Reduced bool     `help:"Smaller sizes (those of the unit tests)."`
	Seed    uint64   `default:"1" help:"Seed of every random generator."`
	Plots   string   `placeholder:"DIR" help:"Write the figures as SVG files into this directory."`
	Stub    string   `placeholder:"DECISION" help:"Put a stub in the place of a decision of the server's code: what rests on it fails."`
	Log     string   `placeholder:"FILE" help:"Write one line per decision of the scheduler (large at full size)."`
}

// Run runs the chosen experiments one after the other.
func (c *runCmd) Run() (err error) {
	chosen, err := choose(experiments(), c.IDs)
	if err != nil {
		return err
	}
	env := &experiment.Env{Seed: c.Seed, Reduced: c.Reduced, Stub: experiment.Decision(c.Stub)}
	if c.Log != "" {
		f, err := os.Create(c.Log)
		if err != nil {
			return fmt.Errorf("decision log: %w", err)
		}
		defer func() {
			if closing := f.Close(); err == nil {
				err = closing
			}
		}()
		env.Log = f
	}
	return runAll(os.Stdout, env, chosen, c.Plots)
}

// choose returns the experiments of ids in the order of all. An identifier's first
// word stands for all that begin with it, "all" for each.
func choose(all []experiment.Experiment, ids []string) ([]experiment.Experiment, error) {
	known := make(map[string]bool, len(ids))
	var chosen []experiment.Experiment
	for _, e := range all {
		group, _, _ := strings.Cut(e.ID, "-")
		for _, id := range []string{"all", group, e.ID} {
			if slices.Contains(ids, id) {
				known[id] = true
			}
		}
		if known["all"] || known[group] || known[e.ID] {
			chosen = append(chosen, e)
		}
	}
	for _, id := range ids {
		if !known[id] {
			return nil, fmt.Errorf("experiment %q is not known, expected all, an identifier of tgtsim list or its first word", id)
		}
	}
	return chosen, nil
}

// runAll prints the result of every experiment and returns errFailed if a
// check of any failed.
func runAll(out io.Writer, env *experiment.Env, chosen []experiment.Experiment, plots string) error {
	var tally experiment.Tally
	for i := range chosen {
		e := &chosen[i]
		if e.Run == nil {
			fmt.Fprintf(out, "%s: not checkable: %s\n\n", e.ID, e.Excluded)
			continue
		}
		result := e.Run(env)
		tally.Count(&result)
		if err := report(out, e, &result); err != nil {
			return err
		}
		if err := drawAll(plots, result.Figures); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, sum(&tally))
	if tally.Failed > 0 {
		return errFailed
	}
	return nil
}

// sum is a tally in words.
func sum(t *experiment.Tally) string {
	passed := make([]string, 0, len(experiment.Kinds))
	for _, k := range experiment.Kinds {
		passed = append(passed, fmt.Sprintf("%d %s", t.Passed[k], k))
	}
	return fmt.Sprintf("passed: %s; %d differ from the paper, %d reports, %d failed", strings.Join(passed, ", "), t.Differs, t.Reports, t.Failed)
}

// report prints one experiment: paper | expected | measured | kind | pass.
func report(out io.Writer, e *experiment.Experiment, r *experiment.Result) error {
	fmt.Fprintf(out, "%s: %s\n", e.ID, e.Setup)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "  \t| paper\t| expected\t| measured\t| kind\t| pass")
	for _, c := range r.Checks {
		kind := c.Kind.String()
		if c.Verdict == experiment.Report {
			kind = "" // no criterion
		}
		fmt.Fprintf(w, "  %s\t| %s\t| %s\t| %s\t| %s\t| %s\n", c.Name, dash(c.Paper), dash(c.Expected), c.Measured, dash(kind), c.Verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, c := range r.Checks {
		if c.Note != "" {
			fmt.Fprintf(out, "  note: %s: %s\n", c.Name, c.Note)
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
