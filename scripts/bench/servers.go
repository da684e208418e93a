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
	Document string `default:"docs/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var serversPlans = map[string]plan{
	"quick": {5, 200 * time.Millisecond, 500 * time.Millisecond, 4},
	"full":  {7, 500 * time.Millisecond, 2 * time.Second, 4},
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
	results, err := client.measure(ctx, servers, workloads)
	if err != nil {
		return err
	}
	return o.record(s.Document, []string{"table", "profile"}, map[string]string{
		"table":   machine(o, client.plan, results, "files in /dev/shm") + requirementTable(requirements, results) + detailTable(results, workloads),
		"profile": o.profiled(ctx, client, servers[lunar], matrix[0]),
	})
}
