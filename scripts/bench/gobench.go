package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// benchmark is a Go benchmark with its metrics, one value of each per repeat, by
// unit.
type benchmark struct {
	name    string
	metrics map[string][]float64
}

// median of a metric; has tells whether there is one.
func (b benchmark) median(unit string) (value float64, has bool) {
	v := b.metrics[unit]
	return median(v), len(v) > 0
}

// benchmarks are results in the order in which they came first.
type benchmarks struct {
	list    []benchmark
	foreign []float64 // by run
}

// named returns a benchmark's results; it has no metrics if it did not run.
func (b *benchmarks) named(name string) benchmark {
	if i := slices.IndexFunc(b.list, func(x benchmark) bool { return x.name == name }); i >= 0 {
		return b.list[i]
	}
	return benchmark{name: name}
}

func (b *benchmarks) add(name, unit string, value float64) {
	i := slices.IndexFunc(b.list, func(x benchmark) bool { return x.name == name })
	if i < 0 {
		i = len(b.list)
		b.list = append(b.list, benchmark{name, map[string][]float64{}})
	}
	b.list[i].metrics[unit] = append(b.list[i].metrics[unit], value)
}

// resultLine is a name, with the number of CPUs unless it is 1, and iterations.
var resultLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// parse adds what a test binary printed.
func (b *benchmarks) parse(output []byte) error {
	for line := range bytes.Lines(output) {
		m := resultLine.FindSubmatch(bytes.TrimSpace(line))
		if m == nil {
			continue
		}
		fields := strings.Fields(string(m[2]))
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("benchmark line %q: %w", line, err)
			}
			b.add(strings.ReplaceAll(string(m[1]), "_", " "), fields[i+1], value)
		}
	}
	return nil
}

// goBenchmarks are the benchmarks of a package that match a pattern.
type goBenchmarks struct {
	binary  string // name of the test binary
	pattern string
	time    time.Duration // of one benchmark
	spread  bool          // over all CPUs, not on the servers' one
}

// arguments follow the binary's path.
func (g goBenchmarks) arguments() []string {
	return []string{"-test.run", "^$", "-test.bench", g.pattern, "-test.benchtime", g.time.String(), "-test.timeout", "5m"}
}

// command is what a reader would type.
func (g goBenchmarks) command() string {
	dir := map[string]string{"cache.test": "./cache", "tier.test": "./cache/tier", "segment.test": "./cache/segment"}[g.binary]
	return fmt.Sprintf("go test -run '^$' -bench '%s' -benchtime %s %s", g.pattern, g.time, dir)
}

// run runs all once more and adds the results.
func (g goBenchmarks) run(ctx context.Context, o *options, tests string, results *benchmarks) error {
	binary, err := filepath.Abs(filepath.Join(tests, g.binary))
	if err != nil {
		return err
	}
	place := o.place(o.Server)
	if g.spread {
		place = o.class()
	}
	line := slices.Concat(place, []string{binary}, g.arguments())
	from, err := lookAround()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = tests // its log goes nowhere, files of its own go to a directory that it makes
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", g.command(), err, bytes.TrimSpace(out))
	}
	to, err := lookAround()
	if err != nil {
		return err
	}
	results.foreign = append(results.foreign, foreign(from, to, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	return results.parse(out)
}
