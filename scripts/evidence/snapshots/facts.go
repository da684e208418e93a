package main

import "lunar/scripts/evidence/notes"

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// options are the command line.
type options struct {
	Tgtd      string   `default:"build/tgtd" help:"The server's binary."`
	Notes     string   `default:"docs/reports/snapshots/results.json" help:"Results, by check."`
	To        string   `default:"docs/reports/snapshots.md" help:"The document."`
	Only      []string `help:"Some of the checks: xfs, btrfs, rollbacks, protected, images, clones, pauses, full, space."`
	Snapshots int      `default:"1000" help:"On xfs; a fifth of it on btrfs."`
	Every     int      `default:"10" help:"Each how manyth snapshot has the server killed amid it."`
	MiB       int      `default:"4" help:"Size of each volume that is written to at random."`
	Disk      string   `default:"build" help:"A directory on a disk, for the file systems' files."`
	Lab       string   `default:"scripts/lab/ceph/cluster.sh" help:"What starts and ends a Ceph cluster."`
	Untimed   bool     `hidden:"" help:"Judge no times."`
}

type result = notes.Result

func tail(said string) string { return said[max(0, len(said)-4096):] }
