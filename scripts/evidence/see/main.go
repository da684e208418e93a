// Command see looks at a server under load through its web page, in a headless Chromium,
// compares the figures there with those of the API, takes pictures, notes the results and
// writes docs/reports/see.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// options are what checks are told.
type options struct {
	Tgtd     string   `default:"build/tgtd" help:"The server's binary; tgtload is beside it."`
	Browser  string   `default:"chromium" help:"The browser."`
	Axe      string   `help:"axe.min.js of axe-core; without it accessibility is not looked at."`
	Notes    string   `default:"docs/reports/see/results.json" help:"Results, by check."`
	To       string   `default:"docs/reports/see.md" help:"The document."`
	Pictures string   `default:"docs/reports/see" help:"Where pictures go."`
	Only     []string `help:"Some of the checks."`
	Pages    int      `default:"20" help:"Pages that are open at a time."`
	Rounds   int      `default:"12" help:"Times alone and with pages."`
}

// facts are what a check has found, in the order in which they are told.
type facts []fact

type fact struct {
	Name, Value string
	Good        bool // it is as it has to be
}

// result is what is noted of a check.
type result struct {
	Title, Version, Machine, At string
	Facts                       facts
}

// check looks at one thing. A row in checks is all that a new one needs.
type check struct {
	name, title string
	run         func(context.Context, options) (facts, error)
}

var checks = []check{
	{"figures", "Figures on the page and of the API", figures},
	{"accessible", "Accessibility", accessible},
	{"pages", "Pages beside I/O", pages},
}

//go:embed see.md.tmpl
var document string

func main() {
	var o options
	kong.Parse(&o, kong.Name("see"), kong.Description("Look at a server under load through its web page."))
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "see:", err)
		os.Exit(1)
	}
}

func (o options) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	results, err := notes.Read[result](o.Notes)
	if err != nil {
		return err
	}
	version, err := daemon.Version(o.Tgtd)
	if err != nil {
		return err
	}
	var wrong error
	for _, c := range checks {
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.name) {
			continue
		}
		found, err := c.run(ctx, o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		for _, f := range found {
			fmt.Printf("%s: %s: %s\n", c.name, f.Name, f.Value)
			if !f.Good {
				wrong = errors.Join(wrong, fmt.Errorf("%s: %s is not as it has to be: %s", c.name, f.Name, f.Value))
			}
		}
		results[c.name] = result{c.title, version, fmt.Sprintf("%d CPUs, %s", runtime.NumCPU(), runtime.GOARCH), time.Now().UTC().Format(time.DateOnly), found}
	}
	if err := notes.Write(o.Notes, results); err != nil {
		return err
	}
	var all []result
	for _, c := range checks {
		if r, ok := results[c.name]; ok {
			all = append(all, r)
		}
	}
	return errors.Join(notes.Render(o.To, document, all), wrong)
}
