package main

import "lunar/scripts/evidence/notes"

// options are what checks are told.
type options struct {
	Tgtd    string   `default:"build/tgtd" help:"The server's binary."`
	Notes   string   `default:"docs/reports/operate/results.json" help:"Results, by check."`
	To      string   `default:"docs/reports/operate.md" help:"The document."`
	Only    []string `help:"Some of the checks."`
	Volumes int      `default:"1000" help:"Volumes of the check of scale."`
	Changes int      `default:"10000" help:"Changes of the check of scale."`
	Writers int      `default:"4" help:"Who make them at a time."`
	Objects int      `default:"300" help:"Volumes of the check of stalls."`
	Untimed bool     `help:"How long something takes is no fault."`
}

type facts = []notes.Fact
