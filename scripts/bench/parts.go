package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// part is a section of the document that Go benchmarks fill.
type part struct {
	section string
	runs    []goBenchmarks
	table   func(b *benchmarks, ghz float64) string
}

const (
	short = 50 * time.Millisecond // in full mode twice as long
	long  = 150 * time.Millisecond
)

var parts = []part{
	{"hits", []goBenchmarks{{"tier.test", "^Benchmark(RandomHit|Tier)$", short, false}, {"cache.test", "^Benchmark(Hit|InsertEvict)$", short, false}}, costTable},
	{"cores", []goBenchmarks{{"tier.test", "^BenchmarkCores$", long, true}}, coresTable},
	{"misses", []goBenchmarks{{"tier.test", "^BenchmarkMiss$", long, true}}, missTable},
	{"decisions", []goBenchmarks{{"cache.test", "^Benchmark(Algorithm1|Route.*|Forward.*|Fussy.*)$", short, false},
		{"tier.test", "^Benchmark(Route.*|Forward.*|Handover|Journal)$", short, true},
		{"segment.test", "^BenchmarkMark$", short, false}}, costTable},
	{"sets", []goBenchmarks{{"tier.test", "^BenchmarkWorkingSet$", short, false}}, setsTable},
	{"memory", []goBenchmarks{{"tier.test", "^BenchmarkOverhead$", short, false}}, overheadTable},
}

// part measures one, all its benchmarks once in each repeat.
func (c *cacheCommand) part(ctx context.Context, o *options, p part) (string, error) {
	full, repeats := c.Mode == "full", plan{repeats: cacheRepeats[c.Mode]}.adjusted(o).repeats
	var results benchmarks
	var commands strings.Builder
	for repeat := range repeats {
		for _, g := range p.runs {
			if full {
				g.time *= 2
			}
			if repeat == 0 {
				fmt.Fprintf(&commands, "    %s\n", g.command())
			}
			if err := g.run(ctx, o, c.Tests, &results); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(os.Stderr, "bench: repeat %d of %d, %s: others %.0f %%\n", repeat+1, repeats, p.section, 100*slices.Max(results.foreign))
	}
	ghz, _ := coreClock()
	return fmt.Sprintf("%s\nMedians of %d repeats of these commands, of all in turns. Other processes took %.0f %% of the machine in the median run, %.0f %% in the worst.\n\n%s",
		commands.String(), repeats, 100*median(results.foreign), 100*slices.Max(results.foreign), p.table(&results, ghz)), nil
}

// number prints a metric with so many decimals, or a dash.
func (b benchmark) number(unit string, decimals int) string {
	value, has := b.median(unit)
	if !has {
		return "–"
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// cycles are counted ones, or those of the core's clock in the same time.
func (b benchmark) cycles(ghz float64) string {
	if _, counted := b.median("cycles/op"); counted || ghz == 0 {
		return b.number("cycles/op", 0)
	}
	ns, _ := b.median("ns/op")
	return fmt.Sprintf("%.0f", ns*ghz)
}

// costTable is the cost of each benchmark, by name.
func costTable(b *benchmarks, ghz float64) string {
	slices.SortFunc(b.list, func(x, y benchmark) int { return strings.Compare(x.name, y.name) })
	var t strings.Builder
	t.WriteString("| benchmark | ns | cycles | bytes allocated | allocations |\n|---|--:|--:|--:|--:|\n")
	for _, x := range b.list {
		fmt.Fprintf(&t, "| %s | %s | %s | %s | %s |\n", x.name, x.number("ns/op", 1), x.cycles(ghz), x.number("B/op", 0), x.number("allocs/op", 0))
	}
	return t.String()
}

// coresTable has a row for each number of loops and a column for each number of
// partitions, out of names such as Cores/loops=2/partitions=16.
func coresTable(b *benchmarks, _ float64) string {
	var rows, columns []string
	for _, x := range b.list {
		loops, partitions := coresName(x.name)
		if !slices.Contains(rows, loops) {
			rows = append(rows, loops)
		}
		if !slices.Contains(columns, partitions) {
			columns = append(columns, partitions)
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| loops | %s |\n|--:|%s\n", strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
	for _, loops := range rows {
		fmt.Fprintf(&t, "| %s |", loops)
		for _, partitions := range columns {
			x := b.named("Cores/loops=" + loops + "/partitions=" + partitions)
			fmt.Fprintf(&t, " %s |", x.millions())
		}
		t.WriteString("\n")
	}
	return t.String()
}

// millions of operations per second.
func (b benchmark) millions() string {
	ns, has := b.median("ns/op")
	if !has {
		return "–"
	}
	return fmt.Sprintf("%.2f", 1e3/ns)
}

func coresName(name string) (loops, partitions string) {
	_, rest, _ := strings.Cut(name, "loops=")
	loops, partitions, _ = strings.Cut(rest, "/partitions=")
	return loops, partitions
}

// missTable compares all ways with the first one.
func missTable(b *benchmarks, _ float64) string {
	var t strings.Builder
	t.WriteString("| way | IOPS | to the first | CPU µs per I/O | to the first |\n|---|--:|--:|--:|--:|\n")
	for _, x := range b.list {
		ns, _ := x.median("ns/op")
		fmt.Fprintf(&t, "| %s | %.0f | %.2f× | %s | %.2f× |\n", strings.TrimPrefix(x.name, "Miss/"), 1e9/ns,
			pairRatio(b.list[0], x, "ns/op"), x.number("cpu-µs/op", 2), pairRatio(x, b.list[0], "cpu-µs/op"))
	}
	return t.String()
}

// pairRatio is the median of the ratios of x to y in each repeat.
func pairRatio(x, y benchmark, unit string) float64 {
	var v []float64
	for i := range min(len(x.metrics[unit]), len(y.metrics[unit])) {
		v = append(v, x.metrics[unit][i]/y.metrics[unit][i])
	}
	return median(v)
}

// overheadTable judges the memory that each GiB of cache needs beside it.
// setsTable has the hits of each block size.
func setsTable(b *benchmarks, _ float64) string {
	var t strings.Builder
	t.WriteString("| block | reads of 4 KiB, twice the cache: hits | ten times | reads of 16 KiB, twice: hits | ten times |\n|---|--:|--:|--:|--:|\n")
	for _, x := range b.list {
		_, block, _ := strings.Cut(x.name, "block=")
		fmt.Fprintf(&t, "| %s | %s %% | %s %% | %s %% | %s %% |\n", block,
			x.number("hits4KiB2x", 1), x.number("hits4KiB10x", 1), x.number("hits16KiB2x", 1), x.number("hits16KiB10x", 1))
	}
	return t.String()
}

func overheadTable(b *benchmarks, _ float64) string {
	const most = 1 // percent
	var t strings.Builder
	t.WriteString("| block | records and index, bytes | journal and head, bytes | table of volumes and intents, bytes | all, bytes | share | to reach | reached |\n|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, x := range b.list {
		index, _ := x.median("index-B/GiB")
		journal, _ := x.median("journal-B/GiB")
		volumes, _ := x.median("volumes-B/GiB")
		all := index + journal + volumes
		share := 100 * all / (1 << 30)
		_, block, _ := strings.Cut(x.name, "block=")
		fmt.Fprintf(&t, "| %s | %.0f | %.0f | %.0f | %.0f | %.3f %% | ≤ %d %% | %s |\n",
			block, index, journal, volumes, all, share, most, yes(share <= most))
	}
	return t.String()
}
