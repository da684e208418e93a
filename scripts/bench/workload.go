package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// workload is one row of a comparison.
type workload struct {
	name        string
	title       string
	rw          string // as tgtload says it; of a mixed one 70 in 100 read
	kib         int    // of one command
	depth       int
	connections int
	tool        tool
	goal        goal
	congestion  string // of new TCP sockets of the machine; empty: as it is
	span        int    // MiB of the volume that it uses; 0: all
	prepared    bool   // all of the span is read first
	volume      int    // of the server; a contender's in a comparison
}

// goal is the parts of SPDK's rate and of its CPU time per I/O to reach; 0: none.
type goal struct{ rate, cpu float64 }

const mixedReads = "70" // of 100

// matrix are the workloads in memory.
var matrix = []workload{
	{name: "read-1", title: "4 KiB random read, depth 1", rw: "randread", kib: 4, depth: 1, connections: 1, tool: tgtload, goal: goal{1.2, 0}},
	{name: "read-8", title: "4 KiB random read, depth 8", rw: "randread", kib: 4, depth: 8, connections: 1, tool: tgtload},
	{name: "read-32", title: "4 KiB random read, depth 32", rw: "randread", kib: 4, depth: 32, connections: 1, tool: tgtload, goal: goal{1.1, 0.9}},
	{name: "read-128", title: "4 KiB random read, depth 128", rw: "randread", kib: 4, depth: 128, connections: 1, tool: tgtload},
	{name: "read-8x32", title: "4 KiB random read, 8 connections of depth 32", rw: "randread", kib: 4, depth: 32, connections: 8, tool: tgtload, goal: goal{1.1, 0.9}},
	{name: "read-32x8", title: "4 KiB random read, 32 connections of depth 8", rw: "randread", kib: 4, depth: 8, connections: 32, tool: tgtload, goal: goal{1.2, 0}},
	{name: "read-64k", title: "64 KiB random read, depth 16", rw: "randread", kib: 64, depth: 16, connections: 1, tool: tgtload, goal: goal{1.1, 0.9}},
	{name: "read-64k-cubic", title: "64 KiB random read, depth 16, cubic", rw: "randread", kib: 64, depth: 16, connections: 1, tool: tgtload, goal: goal{1.1, 0.9}, congestion: "cubic"},
	{name: "read-256k", title: "256 KiB random read, depth 8", rw: "randread", kib: 256, depth: 8, connections: 1, tool: tgtload, goal: goal{1.1, 0.9}},
	{name: "read-256k-cubic", title: "256 KiB random read, depth 8, cubic", rw: "randread", kib: 256, depth: 8, connections: 1, tool: tgtload, goal: goal{1.1, 0.9}, congestion: "cubic"},
	{name: "write-32", title: "4 KiB random write, depth 32", rw: "randwrite", kib: 4, depth: 32, connections: 1, tool: tgtload, goal: goal{1.1, 0}},
	{name: "write-256k", title: "256 KiB sequential write, depth 8", rw: "write", kib: 256, depth: 8, connections: 1, tool: tgtload},
	{name: "mixed-32", title: "4 KiB random, 70 % read, depth 32", rw: "randrw", kib: 4, depth: 32, connections: 1, tool: tgtload},
	{name: "perf-32", title: "4 KiB random read, depth 32, iscsi-perf", rw: "randread", kib: 4, depth: 32, connections: 1, tool: iscsiPerf},
	{name: "polling-32", title: "4 KiB random read, depth 32, client that polls (flatters)", rw: "randread", kib: 4, depth: 32, connections: 1, tool: tgtloadPolling},
}

// diskMatrix are the workloads on a disk.
func diskMatrix() (list []workload) {
	for _, rw := range []string{"read", "write"} {
		for _, depth := range []int{1, 8, 32, 128} {
			list = append(list, workload{name: fmt.Sprintf("%s-%d", rw, depth), title: fmt.Sprintf("4 KiB random %s, depth %d", rw, depth),
				rw: "rand" + rw, kib: 4, depth: depth, connections: 1, tool: tgtload, goal: goal{1, 0}})
		}
	}
	return append(list, workload{name: "mixed-32", title: "4 KiB random, 70 % read, depth 32", rw: "randrw", kib: 4, depth: 32, connections: 1, tool: tgtload, goal: goal{1, 0}})
}

// diskCache is the size of the cache before the disk, in MiB.
const diskCache = 192

// cachedMatrix are the workloads on a disk through the cache.
var cachedMatrix = []workload{
	{name: "cache-half", title: "4 KiB random read, depth 32, working set 0.5× of the cache", rw: "randread", kib: 4, depth: 32, connections: 1, tool: tgtload, span: diskCache / 2, prepared: true},
	{name: "cache-2", title: "4 KiB random read, depth 32, working set 2×", rw: "randread", kib: 4, depth: 32, connections: 1, tool: tgtload, span: diskCache * 2, prepared: true},
	{name: "cache-10", title: "4 KiB random read, depth 32, working set 10×", rw: "randread", kib: 4, depth: 32, connections: 1, tool: tgtload, span: diskCache * 10},
	{name: "cache-mixed", title: "4 KiB random, 70 % read, depth 32, working set 2×", rw: "randrw", kib: 4, depth: 32, connections: 1, tool: tgtload, span: diskCache * 2, prepared: true},
	{name: "cache-write", title: "4 KiB random write, depth 32, working set 10×, flushed all the time", rw: "randwrite", kib: 4, depth: 32, connections: 1, tool: tgtload, span: diskCache * 10},
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

const congestionControl = "/proc/sys/net/ipv4/tcp_congestion_control"

// congest sets the congestion control that new sockets get. It needs root.
func congest(name string) (restore func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	before, err := os.ReadFile(congestionControl)
	if err == nil {
		err = os.WriteFile(congestionControl, []byte(name), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("congestion control %s: %w", name, err)
	}
	return func() { _ = os.WriteFile(congestionControl, before, 0) }, nil
}

// congestion is the system's.
func congestion() string {
	text, _ := os.ReadFile(congestionControl)
	return strings.TrimSpace(string(text))
}
