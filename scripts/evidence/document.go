package main

import (
	_ "embed"
	"fmt"
	"path/filepath"

	"lunar/scripts/evidence/notes"
)

// documentCommand renders what was noted.
type documentCommand struct {
	Before string `default:"docs/reports/reliability/before.json" help:"Results for the code before its mends."`
	After  string `default:"docs/reports/reliability/after.json" help:"Results for the code as it is."`
	To     string `default:"docs/reports" help:"Where the documents are written."`
}

var (
	//go:embed reliability.md.tmpl
	reliability string
	//go:embed kill-points.md.tmpl
	killPoints string
)

// row is a check in both states.
type row struct {
	Promise, How  string
	Before, After string
}

// contents are what templates see.
type contents struct {
	Rows          []row
	Before, After map[string]result
}

// Run implements a command of kong.
func (d *documentCommand) Run() error {
	before, err := notes.Read[result](d.Before)
	if err != nil {
		return err
	}
	after, err := notes.Read[result](d.After)
	if err != nil {
		return err
	}
	c := contents{Before: before, After: after}
	for _, k := range checks {
		c.Rows = append(c.Rows, row{k.promise, k.how, cell(before, k.name), cell(after, k.name)})
	}
	for name, text := range map[string]string{"reliability.md": reliability, "reliability/kill-points.md": killPoints} {
		if err := notes.Render(filepath.Join(d.To, name), text, c); err != nil {
			return err
		}
	}
	return nil
}

// cell is a result in the table.
func cell(results map[string]result, name string) string {
	r, ok := results[name]
	if !ok {
		return "not run"
	}
	outcome := fmt.Sprintf("**%d** %s", r.Wrong, r.Words)
	return fmt.Sprintf("%s: %s (%s, %s)", r.Figures, outcome, r.Version, r.Date)
}
