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

	"gonum.org/v1/plot/plotter"

	"lunar/control"
)

// ladderCommand compares ways of batching in one run, as Tyche's figures 5, 6 and 8
// do: each load on all servers in turns.
type ladderCommand struct {
	Mode     string `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: about a minute; full: about five, for the record."`
	Document string `default:"docs/reports/performance.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Figures  string `default:"docs/reports/performance" help:"Directory of the figure."`
}

var ladderPlans = map[string]plan{
	"quick": {1, 250 * time.Millisecond, 250 * time.Millisecond, 1},
	"full":  {9, 300 * time.Millisecond, 300 * time.Millisecond, 1},
}

// modes are the ways of batching; the first is none, the last the adaptive one.
var modes = []struct{ name, yaml string }{
	{"off", "off"}, {"static 2", "{static: 2}"}, {"static 8", "{static: 8}"}, {"static 64", "{static: 64}"}, {"adaptive", "adaptive"},
}

const off, adaptive = 0, 4

// rung is one load: so many requests outstanding, over all connections.
type rung struct {
	outstanding, connections int
	sizes                    string
}

func rungs() (list []rung) {
	for _, connections := range []int{1, 8, 32} {
		for _, outstanding := range []int{1, 4, 8, 32, 128, 512} {
			if outstanding >= connections {
				list = append(list, rung{outstanding, connections, "4k"})
			}
		}
	}
	for _, outstanding := range []int{32, 128} {
		list = append(list, rung{outstanding, 8, "4k:31,128k:1"}) // half of the bytes are in large ones
	}
	return list
}

// name is what --only calls the rung.
func (r rung) name() string {
	name := fmt.Sprintf("%dx%d", r.outstanding, r.connections)
	if r.sizes != "4k" {
		name += "-mixed"
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
	for i := range modes {
		s, err := startMode(ctx, o, filepath.Join(dir, strconv.Itoa(i)), modes[i].yaml)
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
	results := make([][][]float64, len(chosen)) // by rung, mode and repeat
	for repeat := range client.plan.repeats {
		for i, r := range chosen {
			if results[i] == nil {
				results[i] = make([][]float64, len(modes))
			}
			for n := range modes {
				m := (n + repeat) % len(modes)
				rate, err := client.climb(ctx, servers[m], r, client.plan.runtime)
				if err != nil {
					return fmt.Errorf("%s, %d outstanding: %w", modes[m].name, r.outstanding, err)
				}
				results[i][m] = append(results[i][m], rate)
			}
		}
		fmt.Fprintf(os.Stderr, "bench: ladder, repeat %d of %d\n", repeat+1, client.plan.repeats)
	}
	if len(o.Only) == 0 {
		if err := l.drawLevels(ctx, client, servers[adaptive], filepath.Join(dir, strconv.Itoa(adaptive))); err != nil {
			return err
		}
	}
	text := machine(o, client.plan, nil, "a file in /dev/shm behind the cache") + ladderTable(chosen, results)
	return o.record(l.Document, []string{"ladder"}, map[string]string{"ladder": text})
}

// ladderYAML has room for 512 commands of one session.
const ladderYAML = `server: {batching: %s, threads: 1, limits: {queue-depth: 512}}
cache: {size: 96MiB, segment: none}
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

// startMode starts lunar in a directory of its own.
func startMode(ctx context.Context, o *options, dir, batching string) (*server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("work directory: %w", err)
	}
	return startLunar(ctx, o, serving{work: dir, files: dir, volumes: 1, bytes: 64 << 20, block: logicalBlockKiB << 10,
		yaml: func(port int, files []string) string {
			return fmt.Sprintf(ladderYAML, batching, port, files[0], targetName)
		}})
}

// climb puts a load on a server and returns the commands per second.
func (c client) climb(ctx context.Context, s *server, r rung, runtime time.Duration) (float64, error) {
	w := workload{rw: "randread", depth: r.outstanding / r.connections, connections: r.connections}
	w.tool = tool{arguments: func(c client, s *server, w workload, runtime time.Duration) []string {
		line := tgtloadPolling.arguments(c, s, w, runtime)
		line[slices.Index(line, "--bs")+1] = r.sizes
		return line
	}, result: tgtload.result}
	result, _, err := c.run(ctx, s, w, runtime)
	if err != nil {
		return 0, err
	}
	return result.IOPS, nil
}

// ladderTable has a row for each load: rates, and what adaptive reaches of the best
// static level and of none.
func ladderTable(chosen []rung, results [][][]float64) string {
	var t strings.Builder
	t.WriteString("Thousands of commands per second; the last columns are medians of the ratios within a repeat.\n\n| outstanding | connections | bytes |")
	for _, m := range modes {
		fmt.Fprintf(&t, " %s |", m.name)
	}
	t.WriteString(" adaptive / best static | ≥ 0.9 | adaptive / off | to reach | |\n|--:|--:|---|" + strings.Repeat("--:|", len(modes)) + "--:|---|--:|--:|---|\n")
	for i, r := range chosen {
		fmt.Fprintf(&t, "| %d | %d | %s |", r.outstanding, r.connections, r.sizes)
		best := 1
		for m := range modes {
			rate := median(results[i][m])
			fmt.Fprintf(&t, " %.0f |", rate/1e3)
			if m != off && m != adaptive && rate > median(results[i][best]) {
				best = m
			}
		}
		toBest, toNone := within(results[i], best), within(results[i], off)
		bound := map[bool]float64{true: 1.1, false: 0.95}[r.outstanding >= 128]
		fmt.Fprintf(&t, " %.2f | %s | %.2f | ≥ %g | %s |\n", toBest, yes(toBest >= 0.9), toNone, bound, yes(toNone >= bound))
	}
	return t.String()
}

// within is the median of adaptive's rate beside another's in the same repeat.
func within(modes [][]float64, other int) float64 {
	var v []float64
	for i, rate := range modes[adaptive] {
		v = append(v, rate/modes[other][i])
	}
	return median(v)
}

const (
	levelStep  = time.Second
	levelEvery = 25 * time.Millisecond
)

// drawLevels plots the batch level of the adaptive server while the load changes.
func (l *ladderCommand) drawLevels(ctx context.Context, c client, s *server, dir string) error {
	if l.Figures == "" {
		return nil
	}
	api, err := control.Dial(filepath.Join(dir, control.SocketName))
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	defer api.Close()
	c.place, c.plan.warmup = []string{"taskset", "-c", strconv.Itoa(c.cpu)}, 0 // this program needs some of the CPU
	var levels, loads plotter.XYs
	began := time.Now()
	for _, outstanding := range []int{1, 8, 32, 128, 512, 32, 1} {
		ended := make(chan error, 1)
		go func() {
			_, err := c.climb(ctx, s, rung{outstanding, 1, "4k"}, levelStep)
			ended <- err
		}()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					return err
				}
				running = false
			case <-time.After(levelEvery):
				status, err := api.Status(ctx)
				if err != nil {
					return fmt.Errorf("batch level: %w", err)
				}
				at := time.Since(began).Seconds()
				levels = append(levels, plotter.XY{X: at, Y: float64(status.Server.Threads[0].BatchLevel)})
				loads = append(loads, plotter.XY{X: at, Y: float64(min(outstanding, 128))})
			}
		}
	}
	if err := os.MkdirAll(l.Figures, 0o755); err != nil {
		return fmt.Errorf("figure: %w", err)
	}
	return drawCurves(l.Figures, "level", "Batch level as the load changes", "s", "commands", []curve{{"batch level", levels}, {"outstanding (128: 128 and 512)", loads}})
}
