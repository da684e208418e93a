package main

import "lunar/scripts/evidence/notes"

// options are the command line.
type options struct {
	Tgtd   string   `default:"build/tgtd" help:"The server's binary."`
	Notes  string   `default:"docs/reports/bulk-moves/results.json" help:"Results, by check."`
	To     string   `default:"docs/reports/bulk-moves.md" help:"The document."`
	Only   []string `help:"Some of the checks: memory, disk, staged, kills."`
	Rounds int      `default:"5" help:"Of each measurement."`
	MiB    int64    `default:"512" help:"Size of each volume that is measured."`
	Kills  int      `default:"100" help:"Of either side."`
	Memory string   `default:"/dev/shm" help:"A directory in memory."`
	Disk   string   `default:"build" help:"A directory on a disk."`
}

type result = notes.Result
