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
)

// ladderCommand compares two builds of lunar's tgtd from one command outstanding to 512,
// each load on both in turns.
type ladderCommand struct {
	Before   string `arg:"" type:"existingfile" help:"The tgtd to compare with."`
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: about a minute; full: about five, for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

var ladderPlans = map[string]plan{
	"quick": {1, 250 * time.Millisecond, 250 * time.Millisecond, 1},
	"full":  {9, 300 * time.Millisecond, 300 * time.Millisecond, 1},
}

// rung is one load: so many requests outstanding, over all connections.
type rung struct {
	outstanding, connections int
	sizes                    string
	rw                       string // as tgtload says it
}

func rungs() (list []rung) {
	for _, connections := range []int{1, 8, 32} {
		for _, outstanding := range []int{1, 4, 8, 32, 128, 512} {
			if outstanding >= connections {
				list = append(list, rung{outstanding, connections, "4k", "randread"})
			}
		}
	}
	for _, outstanding := range []int{32, 128} {
		list = append(list, rung{outstanding, 8, "4k:31,128k:1", "randread"}) // half of the bytes are in large ones
	}
	return append(list, rung{32, 1, "4k", "randwrite"})
}

// name is what --only calls the rung.
func (r rung) name() string {
	name := fmt.Sprintf("%dx%d", r.outstanding, r.connections)
	if r.sizes != "4k" {
		name += "-mixed"
	}
	if r.rw == "randwrite" {
		name += "-write"
	}
	return name
}

// chosenRungs are those of these names, all without names.
func chosenRungs(names []string) ([]rung, error) {
	all := rungs()
	if len(names) == 0 {
		return all, nil
	}
	var list, known []string
	var chosen []rung
	for _, r := range all {
		known = append(known, r.name())
		if slices.Contains(names, r.name()) {
			chosen, list = append(chosen, r), append(list, r.name())
		}
	}
	for _, name := range names {
		if !slices.Contains(list, name) {
			return nil, fmt.Errorf("no load %q, expected one of %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// Run measures and writes the document.
func (l *ladderCommand) Run(ctx context.Context, o *options) error {
	dir := o.work
	client := o.client(ladderPlans[l.Mode].adjusted(o))
	var servers []*server
	defer func() {
		for _, s := range servers {
			s.stop()
		}
	}()
	for i, tgtd := range []string{l.Before, o.Tgtd} {
		s, err := startRung(ctx, o, tgtd, filepath.Join(dir, strconv.Itoa(i)))
		if s != nil {
			servers = append(servers, s)
		}
		if err != nil {
			return err
		}
		if err := client.warm(ctx, s, 0); err != nil {
			return err
		}
	}
	chosen, err := chosenRungs(o.Only)
	if err != nil {
		return err
	}
	results := make([][2][]float64, len(chosen)) // by rung, build and repeat
	for repeat := range client.plan.repeats {
		for i, r := range chosen {
			for n := range servers {
				m := (n + repeat) % len(servers)
				rate, err := client.climb(ctx, servers[m], r, client.plan.runtime)
				if err != nil {
					return fmt.Errorf("%s, build %d: %w", r.name(), m, err)
				}
				results[i][m] = append(results[i][m], rate)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: ladder, repeat %d of %d\n", repeat+1, client.plan.repeats)
	}
	text := machine(o, client.plan, nil, "a file of 512 MiB in /dev/shm behind the cache; the client sleeps") + ladderTable(chosen, results)
	return o.record(l.Document, []string{"ladder"}, map[string]string{"ladder": text})
}

// ladderYAML has room for 512 commands of one session.
const ladderYAML = `server: {threads: 1, limits: {queue-depth: 512}}
cache: {size: 640MiB, segment: none}
portal-groups:
  bench: {tag: 1, listen: ["127.0.0.1:%d"]}
volumes:
  ladder: {type: file, path: %q, block-size: 4096, cache: true}
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns: [{lun: 0, volume: ladder}]
`

// startRung starts a build in a directory of its own.
func startRung(ctx context.Context, o *options, tgtd, dir string) (*server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	with := *o
	with.Tgtd = tgtd
	return startLunar(ctx, &with, serving{work: dir, files: dir, volumes: 1, bytes: 512 << 20, block: logicalBlockKiB << 10,
		yaml: func(port int, files []string) string {
			return fmt.Sprintf(ladderYAML, port, files[0], targetName)
		}})
}

// climb puts a load on a server and returns the commands per second.
func (c client) climb(ctx context.Context, s *server, r rung, runtime time.Duration) (float64, error) {
	w := workload{rw: r.rw, depth: r.outstanding / r.connections, connections: r.connections}
	w.tool = tool{arguments: func(c client, s *server, w workload, runtime time.Duration) []string {
		line := tgtload.arguments(c, s, w, runtime)
		line[slices.Index(line, "--bs")+1] = r.sizes
		return line
	}, result: tgtload.result}
	result, _, err := c.run(ctx, s, w, runtime)
	if err != nil {
		return 0, err
	}
	return result.IOPS, nil
}

// ladderTable has a row for each load.
func ladderTable(chosen []rung, results [][2][]float64) string {
	var t strings.Builder
	t.WriteString("| outstanding | connections | commands | bytes | before, thousands/s | after | ratio |\n|--:|--:|---|---|--:|--:|--:|\n")
	for i, r := range chosen {
		before, after := results[i][0], results[i][1]
		var within []float64
		for repeat := range before {
			within = append(within, after[repeat]/before[repeat])
		}
		fmt.Fprintf(&t, "| %d | %d | %s | %s | %.0f | %.0f | %.2f |\n", r.outstanding, r.connections, strings.TrimPrefix(r.rw, "rand"), r.sizes, median(before)/1e3, median(after)/1e3, median(within))
	}
	return t.String()
}
