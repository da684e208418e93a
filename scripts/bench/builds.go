package main

import (
	"context"
	"errors"
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
	s, err := readSamples(o.Samples)
	if err != nil {
		return err
	}
	workloads, err := selected(matrix, o.Only)
	if err != nil {
		return err
	}
	client := o.client(buildsPlan.adjusted(o))
	f := &field{}
	defer f.stop()
	for _, build := range []struct{ name, tgtd string }{{"before", b.Before}, {"after", o.Tgtd}} {
		dir, with := filepath.Join(o.work, build.name), *o
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("work directory: %w", err)
		}
		with.Tgtd = build.tgtd
		server, err := startLunarMemory(ctx, &with, memory(o, dir), client)
		f.enter(server, err, contender{name: build.name + " " + lunarCached, volume: cachedVolume, back: true}, contender{name: build.name + " " + lunarRAM, volume: ramVolume})
		if err != nil {
			return err
		}
	}
	if err := errors.Join(client.measure(ctx, f.contenders, workloads, s), s.write(o.Samples)); err != nil {
		return err
	}
	titles := fmt.Sprintf("%d MiB of data in each volume, files in /dev/shm behind the cache and volumes in memory", o.Data)
	return o.record(b.Document, []string{"builds"}, map[string]string{"builds": machine(o, client.plan, s, titles) + buildsTable(s)})
}

func buildsTable(s samples) string {
	var t strings.Builder
	t.WriteString("| workload | server | before, thousands of commands/s | after | ratio | CPU per command, before, µs | after | ratio |\n|---|---|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range matrix {
		for _, volume := range []string{lunarRAM, lunarCached} {
			rounds, before, after := s[w.name], "before "+volume, "after "+volume
			if len(rounds) == 0 {
				continue
			}
			fmt.Fprintf(&t, "| %s | %s |", w.title, volume)
			for _, m := range []struct {
				of   metric
				unit float64
			}{{iops, 1e3}, {serverCPU, 1}} {
				fmt.Fprintf(&t, " %.3g | %.3g | %s |", median(values(rounds, before, m.of))/m.unit, median(values(rounds, after, m.of))/m.unit, ofAnother(ratios(rounds, after, before, m.of)))
			}
			t.WriteString("\n")
		}
	}
	return t.String()
}
