package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// buildsCommand compares two builds of lunar's tgtd: whether a change has cost speed.
type buildsCommand struct {
	Before   string `arg:"" type:"existingfile" help:"The tgtd to compare with."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var buildsPlan = plan{15, 100 * time.Millisecond, 400 * time.Millisecond, 2}

// Run measures and writes the document.
func (b *buildsCommand) Run(ctx context.Context, o *options) error {
	workloads, err := selected(matrix, o.Only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "lunar-bench-")
	if err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	defer os.RemoveAll(dir)
	client := o.client(buildsPlan.adjusted(o))
	var servers []*server
	defer func() { stopServers(servers) }()
	for _, tgtd := range []string{b.Before, o.Tgtd} { // before takes the place of C tgt
		s, err := startBuild(ctx, o, tgtd, filepath.Join(dir, fmt.Sprint(len(servers))))
		if s != nil {
			servers = append(servers, s)
		}
		if err != nil {
			return err
		}
		for volume := range s.urls {
			if err := client.warm(ctx, s, volume); err != nil {
				return err
			}
		}
	}
	s, err := client.measure(ctx, servers, workloads)
	if err != nil {
		return err
	}
	return o.record(b.Document, []string{"builds"}, map[string]string{"builds": machine(o, client.plan, s, "files in /dev/shm behind the cache") + buildsTable(workloads, s)})
}

// startBuild starts one of the builds in a directory of its own.
func startBuild(ctx context.Context, o *options, tgtd, dir string) (*server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	with := *o
	with.Tgtd = tgtd
	return startLunar(ctx, &with, onTmpfs(dir), port)
}

func buildsTable(workloads []workload, s samples) string {
	var t strings.Builder
	t.WriteString("| workload | before, thousands of commands/s | after | ratio | CPU per command, before, µs | after | ratio |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range workloads {
		pairs := s[w.name]
		fmt.Fprintf(&t, "| %s |", w.title)
		for _, m := range []struct {
			of   metric
			unit float64
		}{{iops, 1e3}, {serverCPU, 1}} {
			fmt.Fprintf(&t, " %.3g | %.3g | %.2f |", median(values(pairs, tgt, m.of))/m.unit, median(values(pairs, lunar, m.of))/m.unit, median(ratios(pairs, tgt, m.of)))
		}
		t.WriteString("\n")
	}
	return t.String()
}
