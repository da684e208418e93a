package main

import (
	"fmt"
	"slices"
)

// workload is one row of a comparison.
type workload struct {
	name        string
	title       string
	rw          string // as tgtload says it
	kib         int    // of one command
	depth       int
	connections int
	volume      int // of the servers' volumes
	tool        tool
	limited     bool // the loopback limit has this row
}

var matrix = []workload{
	{"read-32", "4 KiB random read, depth 32", "randread", 4, 32, 1, throughVolume, tgtload, true},
	{"read-32-asleep", "4 KiB random read, depth 32, client that sleeps", "randread", 4, 32, 1, throughVolume, tgtloadAsleep, false},
	{"read-1", "4 KiB random read, depth 1", "randread", 4, 1, 1, throughVolume, tgtload, true},
	{"read-128", "4 KiB random read, depth 128", "randread", 4, 128, 1, throughVolume, tgtload, true},
	{"read-8x32", "4 KiB random read, 8 connections of depth 32", "randread", 4, 32, 8, throughVolume, tgtload, false},
	{"write-32", "4 KiB random write, depth 32, write: back", "randwrite", 4, 32, 1, backVolume, tgtload, false},
	{"read-256k", "256 KiB sequential read, depth 8", "read", 256, 8, 1, throughVolume, tgtload, false},
	{"write-256k", "256 KiB sequential write, depth 8, write: back", "write", 256, 8, 1, backVolume, tgtload, false},
}

// selected returns the workloads with these names, all without names.
func selected(all []workload, names []string) ([]workload, error) {
	if len(names) == 0 {
		return all, nil
	}
	var list []workload
	for _, name := range names {
		i := slices.IndexFunc(all, func(w workload) bool { return w.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}
