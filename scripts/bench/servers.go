package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// serversCommand compares the whole targets.
type serversCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: short runs; full: for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var serversPlans = map[string]plan{
	"quick": {3, 400 * time.Millisecond, 400 * time.Millisecond, 1},
	"full":  {7, 500 * time.Millisecond, time.Second, 2},
}

// Run measures and writes the document.
func (s *serversCommand) Run(ctx context.Context, o *options) error {
	workloads, err := selected(matrix, o.Only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("/dev/shm", "lunar-bench-")
	if err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	defer os.RemoveAll(dir)
	servers, err := startServers(ctx, o, onTmpfs(dir))
	defer stopServers(servers)
	if err != nil {
		return err
	}
	client := o.client(serversPlans[s.Mode].adjusted(o))
	if client.limit, err = startLoop(o); err != nil {
		return err
	}
	defer client.limit.stop()
	if err := client.warmUp(ctx, servers); err != nil {
		return err
	}
	results, err := client.measure(ctx, servers, workloads)
	if err != nil {
		return err
	}
	return o.record(s.Document, []string{"table", "profile"}, map[string]string{
		"table":   machine(o, client.plan, results, "files in /dev/shm, lunar's behind its cache") + requirementTable(requirements, results) + limitTable(results) + detailTable(results, workloads),
		"profile": o.profiled(ctx, client, servers[lunar], matrix[0]) + "\n" + o.profiled(ctx, client, servers[lunar], matrix[5]),
	})
}
