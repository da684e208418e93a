package main

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lunar/scripts/evidence/notes"
)

// documentCommand renders what was noted.
type documentCommand struct {
	Before string `default:"docs/reports/security-evidence/before.json" help:"Results for the code before its mends."`
	After  string `default:"docs/reports/security-evidence/after.json" help:"Results for the code as it is."`
	To     string `default:"docs/reports/security-evidence.md" help:"The document."`
	Corpus string `default:"scripts/evidence/security/testdata/corpus.json" help:"Seeds of fuzzing."`
}

//go:embed security-evidence.md.tmpl
var page string

// contents are what the template sees.
type contents struct {
	Before, After string // versions
	Rows          []row
	Open          []string // attacks that do not hold
	Fuzzed        []fuzzed
	CPU, Busy     string
	Columns       []string
	Scale         []scaled
	StormColumns  []string
	Storm         scaled
}

// row is an attack in both states.
type row struct {
	Item, Name, How           string
	CanaryBefore, CanaryAfter string
	Before, After             string
}

// fuzzed is a grammar's row.
type fuzzed struct {
	Name, How       string
	Inputs, Kinds   int
	CPU             int // minutes
	Canary, Outcome string
	Measured        string // the canary: of which version, when
}

// scaled is a number of sessions' row.
type scaled struct {
	Sessions int
	Figures  []string
	Failed   string
}

// Run implements a command of kong.
func (d *documentCommand) Run() error {
	before, err := notes.Read[outcome](d.Before)
	if err != nil {
		return err
	}
	after, err := notes.Read[outcome](d.After)
	if err != nil {
		return err
	}
	seeds, err := notes.Read[map[string]uint64](d.Corpus)
	if err != nil {
		return err
	}
	c := contents{Before: versions(before), After: versions(after), Columns: scaleColumns}
	for _, a := range attacks {
		c.Rows = append(c.Rows, row{a.item, a.name, a.how, suffered(before, a), suffered(after, a), got(before, a), got(after, a)})
		if len(after[a.name].Failed) > 0 {
			c.Open = append(c.Open, a.name)
		}
	}
	c.fuzzing(after, seeds)
	for _, n := range scaleSessions {
		c.Scale = append(c.Scale, scaledTo(n, after[fmt.Sprintf("scale-%d", n)], scaleColumns))
	}
	c.StormColumns, c.Storm = stormColumns, scaledTo(stormSessions, after[storm.name], stormColumns)
	return notes.Render(d.To, page, c)
}

// measured tells what the canary's figures are of.
func measured(o outcome) string {
	if o.Phases == 0 {
		return "-"
	}
	return o.Version + ", " + o.Date
}

func scaledTo(n int, o outcome, columns []string) scaled {
	s := scaled{Sessions: n, Failed: strings.Join(o.Failed, "; ")}
	for _, column := range columns {
		s.Figures = append(s.Figures, fmt.Sprintf("%.6g", o.Figures[column]))
	}
	return s
}

// fuzzing fills the rows of grammars in.
func (c *contents) fuzzing(results map[string]outcome, seeds map[string]map[string]uint64) {
	cpu, busy := 0.0, 0.0
	all := []attack{guided}
	for _, g := range grammars {
		all = append(all, fuzzing(g))
	}
	for _, a := range all {
		o := results[a.name]
		outcome := "holds"
		switch {
		case o.Version == "":
			outcome = "not run"
		case len(o.Failed) > 0:
			outcome = "**does not hold**: " + strings.Join(o.Failed, "; ")
		}
		c.Fuzzed = append(c.Fuzzed, fuzzed{a.name, a.how, int(o.Figures[inputs]), len(seeds[a.name]), int(math.Round(o.CPUSeconds / 60)), suffered(results, a), outcome, measured(o)})
		cpu += o.CPUSeconds
		busy += o.BusySeconds
	}
	c.CPU, c.Busy = fmt.Sprintf("%.1f hours", cpu/3600), fmt.Sprintf("%.0f minutes", busy/60)
}

// suffered is what the canary noticed, in a cell.
func suffered(results map[string]outcome, a attack) string {
	o, ok := results[a.name]
	switch {
	case !ok:
		return "not run"
	case o.Phases == 0:
		return "none there"
	}
	cell := fmt.Sprintf("p99 %.3g → %.3g ms (%.1f), longest %.3g ms, %.0f %%", o.P99Alone, o.P99, o.Latency, o.Longest, 100*o.Throughput)
	if o.Lost > 0 {
		cell += fmt.Sprintf(", %d sessions or logins lost", o.Lost)
	}
	if o.Miscompares > 0 {
		cell += fmt.Sprintf(", **%d miscompares**", o.Miscompares)
	}
	return cell
}

// got is what the attacker got, in a cell: the figures that are judged come first.
func got(results map[string]outcome, a attack) string {
	o, ok := results[a.name]
	if !ok {
		return "not run"
	}
	var parts []string
	told := map[string]bool{grown: true, endedOf: true}
	for _, b := range a.bounds {
		parts = append(parts, fmt.Sprintf("**%s: %.6g**", b.figure, o.Figures[b.figure]))
		told[b.figure] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.Figures)) {
		if !told[name] {
			parts = append(parts, fmt.Sprintf("%s: %.6g", name, o.Figures[name]))
		}
	}
	if len(o.Failed) > 0 {
		parts = append(parts, "*does not hold*")
	}
	return strings.Join(parts, "; ")
}

// versions are those that were measured.
func versions(results map[string]outcome) string {
	seen := map[string]bool{}
	for _, o := range results {
		seen[o.Version+", "+o.Date] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), "; ")
}
