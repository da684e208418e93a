package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pollingCommand compares settings of the server for threads without work, on a disk and
// in memory: none may be slower than to sleep at once.
type pollingCommand struct {
	Mode     string   `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: two minutes; full: for the record."`
	Document string   `default:"docs/reports/performance-disk.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Disk     string   `default:"/var/tmp" type:"existingdir" help:"Directory on the disk. Files of 512 MiB are made there, one for each setting."`
	Settings []string `help:"Settings to measure, by their names in the table, instead of all."`
	Before   string   `type:"existingfile" help:"Another tgtd, to compare the default setting with."`
}

var pollingPlans = map[string]plan{
	"quick": {2, 200 * time.Millisecond, 300 * time.Millisecond, 1},
	"full":  {5, 200 * time.Millisecond, 500 * time.Millisecond, 2},
}

// pollings are the settings. The first is what the others must not be slower than.
var pollings = []struct{ title, yaml string }{
	{"off", `poll: "off"`},
	{"adaptive", `poll: adaptive`},
	{"50us", `poll: adaptive, busy-poll: 50us`},
	{"200us, 90 %", `poll: adaptive, busy-poll: 200us, poll-budget: 90%`},
	{"always", `poll: always`},
}

const (
	pollingBefore = "before"
	pollingBytes  = 512 << 20
)

// pollingMatrix has the disk's workloads and the same on a volume in memory.
func pollingMatrix() (list []workload) {
	for _, volume := range []string{"disk", "memory"} {
		for _, rw := range []string{"read", "write"} {
			for _, depth := range []int{1, 8, 32, 128} {
				w := workload{name: fmt.Sprintf("%s-%s-%d", volume, rw, depth), title: fmt.Sprintf("%s, 4 KiB random %s, depth %d", volume, rw, depth),
					rw: "rand" + rw, kib: 4, depth: depth, connections: 1, tool: tgtload}
				if volume == "memory" {
					w.volume = 1
				}
				list = append(list, w)
			}
		}
	}
	return list
}

// Run measures and writes the document.
func (c *pollingCommand) Run(ctx context.Context, o *options) error {
	s, err := readSamples(o.Samples)
	if err != nil {
		return err
	}
	workloads, err := selected(pollingMatrix(), o.Only)
	if err != nil {
		return err
	}
	files, err := os.MkdirTemp(c.Disk, "lunar-bench-")
	if err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	defer os.RemoveAll(files)
	f := &field{}
	defer f.stop()
	if err := c.start(ctx, o, f, files); err != nil {
		return err
	}
	client := o.client(pollingPlans[c.Mode].adjusted(o))
	for _, w := range workloads {
		var on []contender
		for _, k := range f.contenders {
			if k.volume = w.volume; k.tool == nil || k.volume == 0 { // fio knows the file alone
				on = append(on, k)
			}
		}
		err = errors.Join(err, client.measure(ctx, on, []workload{w}, s))
	}
	if err := errors.Join(err, s.write(o.Samples)); err != nil {
		return err
	}
	titles := fmt.Sprintf("512 MiB in each volume, files in %s with O_DIRECT", c.Disk)
	return o.record(c.Document, []string{"polling"}, map[string]string{"polling": machine(o, client.plan, s, titles) + pollingTable(s)})
}

func (c *pollingCommand) start(ctx context.Context, o *options, f *field, files string) error {
	for i, p := range pollings {
		if len(c.Settings) > 0 && !slices.Contains(c.Settings, p.title) {
			continue
		}
		if err := enterPolling(ctx, o, f, filepath.Join(files, fmt.Sprint(i)), p.title, p.yaml); err != nil {
			return err
		}
	}
	file := filepath.Join(files, "fio")
	if err := fillFiles([]string{file}, pollingBytes); err != nil {
		return err
	}
	f.enter(&server{name: fioName, size: pollingBytes}, nil, contender{name: fioName, tool: fioDirect(file)})
	if c.Before == "" {
		return nil
	}
	with := *o
	with.Tgtd = c.Before
	return enterPolling(ctx, &with, f, filepath.Join(files, pollingBefore), pollingBefore, "poll: adaptive")
}

// enterPolling starts a server with a setting.
func enterPolling(ctx context.Context, o *options, f *field, dir, title, setting string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("work directory: %w", err)
	}
	s, err := startLunar(ctx, o, serving{work: dir, files: dir, volumes: 1, units: 2, bytes: pollingBytes, block: logicalBlockKiB << 10, yaml: func(port int, files []string) string {
		return fmt.Sprintf(pollingConfig, setting, port, files[0], targetName)
	}})
	if s != nil {
		s.spins = strings.Contains(setting, "always")
		err = errors.Join(err, s.rest())
	}
	f.enter(s, err, contender{name: title})
	return err
}

const pollingConfig = `server: {%s}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  direct: {type: file, path: %q, block-size: 4096, direct: true}
  ram: {type: ram, size: 512MiB, block-size: 4096}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns: [{lun: 0, volume: direct}, {lun: 1, volume: ram}]
`

func pollingTable(s samples) string {
	var b strings.Builder
	first := pollings[0].title
	fmt.Fprintf(&b, "| workload | `poll` | IOPS (min to max) | p50 µs | p99 µs | server CPU µs | rate of %s | CPU of %s |\n|---|---|--:|--:|--:|--:|--:|--:|\n", first, first)
	for _, w := range pollingMatrix() {
		rounds := s[w.name]
		names := []string{fioName, pollingBefore}
		for _, p := range pollings {
			names = append(names, p.title)
		}
		for _, name := range names {
			rates := values(rounds, name, iops)
			if len(rates) == 0 {
				continue
			}
			of := func(m metric) float64 { return median(values(rounds, name, m)) }
			fmt.Fprintf(&b, "| %s | %s | %.0f (%.0f to %.0f) | %s | %s | %.2f | %s | %s |\n", w.title, name, of(iops), slices.Min(rates), slices.Max(rates),
				latency(of(p50)), latency(of(p99)), of(serverCPU), ofAnother(ratios(rounds, name, first, iops)), ofAnother(ratios(rounds, name, first, serverCPU)))
		}
	}
	return b.String() + "\n"
}
