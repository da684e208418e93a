package main

import (
	"fmt"
	"os"
	"strings"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/papers"
)

type pageCmd struct {
	File string `arg:"" help:"The page, which has lines <!-- simulation:figures --> and <!-- /simulation:figures -->."`
}

// Run writes the tables of all figures and of what differs into a page, from reduced runs.
func (c *pageCmd) Run() error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	results := map[string]*experiment.Result{}
	for _, e := range experiments() {
		if e.Run != nil {
			r := e.Run(&experiment.Env{Seed: 1, Reduced: true})
			results[e.ID] = &r
		}
	}
	page, err := withTables(string(text), results)
	if err != nil {
		return err
	}
	return os.WriteFile(c.File, []byte(page), 0o644)
}

// withTables returns a page with its tables made anew.
func withTables(page string, results map[string]*experiment.Result) (string, error) {
	var err error
	for _, t := range []struct{ name, text string }{{"figures", figuresTable(results)}, {"differences", differencesTable(results)}} {
		if page, err = between(page, "simulation:"+t.name, t.text); err != nil {
			return "", err
		}
	}
	return page, nil
}

// between replaces what stands between two markers.
func between(page, marker, text string) (string, error) {
	begin, end := "<!-- "+marker+" -->\n", "<!-- /"+marker+" -->"
	before, rest, found := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "", fmt.Errorf("the page has no %q with its end", begin)
	}
	return before + begin + text + end + after, nil
}

// figuresTable is a row for each figure, with the checks of its experiments that passed by
// their kinds.
func figuresTable(results map[string]*experiment.Result) string {
	var all experiment.Tally
	for _, r := range results {
		all.Count(r)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "All experiments, reduced: %s.\n\n", sum(&all))
	b.WriteString("| work | figure | shows | state | paper | model | wiring | differ | experiments | how, why |\n|---|---|---|---|--:|--:|--:|--:|---|---|\n")
	for i := range papers.Items {
		it := &papers.Items[i]
		t := it.Count(results)
		fmt.Fprintf(&b, "| %s | %s | %s | %s |", it.Work, it.Name, it.Shows, it.State)
		for _, n := range []int{t.Passed[experiment.Paper], t.Passed[experiment.Model], t.Passed[experiment.Wiring], t.Differs} {
			fmt.Fprintf(&b, " %s |", count(n))
		}
		fmt.Fprintf(&b, " %s | %s |\n", strings.Join(it.Experiments, ", "), it.Why)
	}
	return b.String()
}

// count prints a number of checks, nothing for none.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// differencesTable is a row for each value that misses the paper's.
func differencesTable(results map[string]*experiment.Result) string {
	var b strings.Builder
	b.WriteString("| experiment | value | paper | here | why |\n|---|---|--:|--:|---|\n")
	for _, e := range experiments() {
		if r := results[e.ID]; r != nil {
			for _, c := range r.Checks {
				if c.Verdict == experiment.Differs {
					fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", e.ID, c.Name, c.Paper, c.Measured, c.Note)
				}
			}
		}
	}
	return b.String()
}
