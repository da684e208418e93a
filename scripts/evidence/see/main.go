// Command see looks at a server under load through its web page, in a headless Chromium,
// compares the figures there with those of the API, takes pictures, notes the results and
// writes docs/reports/see.md.
package main

import (
	_ "embed"

	"github.com/alecthomas/kong"

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

type facts = []notes.Fact

// checks look at one thing each. A row is all that a new one needs.
var checks = []notes.Check[options]{
	{Name: "figures", Title: "Figures on the page and of the API", Run: notes.Facts(figures)},
	{Name: "accessible", Title: "Accessibility", Run: notes.Facts(accessible)},
	{Name: "pages", Title: "Pages beside I/O", Run: notes.Facts(pages)},
}

//go:embed see.md.tmpl
var document string

func main() {
	var o options
	line := kong.Parse(&o, kong.Name("see"), kong.Description("Look at a server under load through its web page."))
	line.FatalIfErrorf(notes.Measure(notes.Report{Tgtd: o.Tgtd, Notes: o.Notes, To: o.To, Page: document, Only: o.Only}, o, checks))
}
