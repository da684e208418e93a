package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/internal/initiator/load"
)

// scalingCommand shows that one core serves many logical units and connections as
// fast as one, and a large cache and many sessions without pauses.
type scalingCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: about three minutes; full: about six, for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var scalingPlans = map[string]plan{
	"quick": {8, 80 * time.Millisecond, 150 * time.Millisecond, 1},
	"full":  {15, 100 * time.Millisecond, 250 * time.Millisecond, 1},
}

// spreads are the loads: logical units and connections, each of depth 32.
var spreads = []spreadLoad{
	{1, 2}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {1, 64},
	{2, 2}, {2, 8}, {2, 64}, {4, 4}, {4, 8}, {4, 64}, {8, 8}, {8, 64},
}

const (
	spreadUnits = 8
	spreadBytes = 256 << 20 // that each load reads, over all its logical units
)

// Run measures and writes the document.
func (k *scalingCommand) Run(ctx context.Context, o *options) error {
	dir := o.work
	var err error
	client := o.client(scalingPlans[k.Mode].adjusted(o))
	scaling, crowd := "", ""
	if wanted(o, "spread") {
		if scaling, err = k.spread(ctx, o, client, dir); err != nil {
			return err
		}
	}
	if wanted(o, "crowd") {
		if crowd, err = k.crowd(ctx, o, client, dir); err != nil {
			return err
		}
	}
	head := machine(o, client.plan, nil, "files in /dev/shm behind the cache")
	return o.record(k.Document, []string{"scaling", "crowd"}, map[string]string{"scaling": head + scaling, "crowd": crowd})
}

func wanted(o *options, name string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, name) }

const spreadYAML = `server: {threads: 1}
cache: {size: 2304MiB, segment: none}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
%stargets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
%s`

// spread measures all loads in turns, as often as planned.
func (k *scalingCommand) spread(ctx context.Context, o *options, c client, dir string) (string, error) {
	s, err := startLunar(ctx, o, serving{work: dir, files: dir, volumes: spreadUnits, bytes: spreadBytes, block: logicalBlockKiB << 10, holes: true,
		yaml: func(port int, files []string) string {
			var volumes, luns strings.Builder
			for i, file := range files {
				fmt.Fprintf(&volumes, "  v%d: {type: file, path: %q, block-size: 4096, cache: true}\n", i, file)
				fmt.Fprintf(&luns, "      - {lun: %d, volume: v%d}\n", i, i)
			}
			return fmt.Sprintf(spreadYAML, port, volumes.String(), targetName, luns.String())
		}})
	if s != nil {
		defer s.stop()
	}
	if err != nil {
		return "", err
	}
	for volume := range spreadUnits {
		if err := c.warm(ctx, s, volume); err != nil {
			return "", err
		}
	}
	measured := make([]spreadRow, len(spreads))
	for repeat := range c.plan.repeats {
		for i, l := range spreads {
			if err := c.compareSpread(ctx, s, l, &measured[i]); err != nil {
				return "", fmt.Errorf("%d connections, %d logical units: %w", l.connections, l.units, err)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: scaling, repeat %d of %d\n", repeat+1, c.plan.repeats)
	}
	return spreadTable(measured), nil
}

// spreadLoad is one load.
type spreadLoad struct{ units, connections int }

// spreadRow is what was measured of a load, and of one connection beside it: by
// repeat. The speed of a virtual machine changes from second to second.
type spreadRow struct {
	rates, parts, costs, costParts []float64
	busy                           []float64 // of the client, in percent
}

// compareSpread measures a load right after one connection to one logical unit.
func (c client) compareSpread(ctx context.Context, s *server, l spreadLoad, row *spreadRow) error {
	one, err := c.spreadRate(ctx, s, spreadLoad{1, 1})
	if err != nil {
		return err
	}
	r, err := c.spreadRate(ctx, s, l)
	if err != nil {
		return err
	}
	row.rates, row.parts = append(row.rates, r.IOPS), append(row.parts, r.IOPS/one.IOPS)
	row.costs, row.costParts = append(row.costs, r.ServerCPU.PerIO), append(row.costParts, r.ServerCPU.PerIO/one.ServerCPU.PerIO)
	row.busy = append(row.busy, clientBusy(*r))
	return nil
}

func (c client) spreadRate(ctx context.Context, s *server, l spreadLoad) (*load.Result, error) {
	w := workload{rw: "randread", kib: 4, depth: 32, connections: l.connections,
		tool: tgtload.with("--luns", strconv.Itoa(l.units), "--size", strconv.Itoa(spreadBytes/l.units))}
	r, _, err := c.run(ctx, s, w, c.plan.runtime)
	return r, err
}

// spreadTable compares each load with one connection to one logical unit.
func spreadTable(measured []spreadRow) string {
	var t strings.Builder
	t.WriteString("4 KiB random reads, depth 32 on each connection, of 256 MiB over all logical units, on one core. The ratios are " +
		"medians of those to one connection to one logical unit, each measured right before.\n\n" +
		"| logical units | connections | IOPS | of one connection | ≥ 0.9 | server CPU per I/O, µs | of one connection | client busy, % |\n|--:|--:|--:|--:|---|--:|--:|--:|\n")
	for i, l := range spreads {
		row := &measured[i]
		part := median(row.parts)
		fmt.Fprintf(&t, "| %d | %d | %.0f | %.2f | %s | %.2f | %.2f | %.0f |\n", l.units, l.connections, median(row.rates), part, yes(part >= 0.9),
			median(row.costs), median(row.costParts), median(row.busy))
	}
	return t.String()
}

// state is the directory that a server keeps its state and its control socket in.
func (k *scalingCommand) state(dir, name string) (string, error) {
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("work directory: %w", err)
	}
	return dir, nil
}
