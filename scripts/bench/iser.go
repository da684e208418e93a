package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// iserCommand compares servers over RDMA and TCP in a guest of the lab.
type iserCommand struct {
	rdmaGuest
	Seconds  int      `default:"2" help:"How long each server is measured each time."`
	Others   []string `help:"Compare with these alone, such as tgt-iser; the document is not written then."`
	Document string   `default:"docs/reports/performance-iser.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

const iserRepeats = 5

// rdmaGuest is the lab's guest with RDMA.
type rdmaGuest struct {
	Lab string `type:"existingfile" default:"scripts/lab/run.sh" help:"The lab."`
	Log string `type:"existingfile" help:"What an earlier run in the lab said, instead of a new one."`
}

// said runs a scenario and returns what it said; Log is then where that is.
func (g *rdmaGuest) said(ctx context.Context, scenario, arguments string) (string, error) {
	if g.Log == "" {
		lab := exec.CommandContext(ctx, g.Lab, scenario)
		lab.Env = append(os.Environ(), "LAB_ARGUMENTS="+arguments)
		lab.Stdout, lab.Stderr = os.Stderr, os.Stderr
		if err := lab.Run(); err != nil {
			return "", fmt.Errorf("the lab: %w", err)
		}
		g.Log = "build/lab/30-" + scenario + "@rdma/guest.log"
	}
	text, err := os.ReadFile(g.Log)
	if err != nil {
		return "", fmt.Errorf("the lab's log: %w", err)
	}
	return string(text), nil
}

// Run measures and writes the document.
func (c *iserCommand) Run(ctx context.Context, o *options) error {
	repeats := iserRepeats
	if o.Repeats > 0 {
		repeats = o.Repeats
	}
	text, err := c.said(ctx, "iser-bench", c.arguments(repeats, o.Only))
	if err != nil {
		return err
	}
	r, err := parseISER(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Log, err)
	}
	if len(c.Others) > 0 {
		c.Document = ""
	}
	return o.record(c.Document, []string{"iser", "counts"}, map[string]string{
		"iser": fmt.Sprintf("%s; %d interleaved repeats.\n\n%s\n%s", time.Now().UTC().Format("2006-01-02 15:04 UTC"), r.repeats(),
			r.rates(), r.costs()),
		"counts": r.countTable(),
	})
}

// arguments are those of the scenario; without workloads all are run.
func (c *iserCommand) arguments(repeats int, workloads []string) string {
	servers := []string{lunarISER}
	if len(workloads) == 0 {
		for _, w := range iserWorkloads {
			workloads = append(workloads, w.name)
		}
	}
	for _, o := range iserOthers {
		if len(c.Others) == 0 || slices.Contains(c.Others, o.name) {
			servers = append(servers, o.name)
		}
	}
	return fmt.Sprintf("%d %d %s %s", repeats, c.Seconds, strings.Join(workloads, ","), strings.Join(servers, ","))
}

// iserSample is one run of a workload on a server.
type iserSample struct {
	rate   float64 // I/O per second
	server float64 // CPU ticks of its process per I/O; 0: it is none
	guest  float64 // CPU ticks of the whole guest per I/O
}

// iserResults are the samples by workload and server, in the order of repeats, and
// what Lunar's RDMA did per I/O by workload and counter.
type iserResults struct {
	samples  map[string]map[string][]iserSample
	counters []string
	counts   map[string][][]float64
}

// parseISER reads what the scenario iser-bench says:
//
//	sample REPEAT WORKLOAD SERVER MICROSECONDS IOS SERVER-TICKS GUEST-TICKS
//	counters NAME...
//	counted WORKLOAD IOS BEFORE... AFTER...
func parseISER(text string) (*iserResults, error) {
	r := &iserResults{samples: map[string]map[string][]iserSample{}, counts: map[string][][]float64{}}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		var err error
		switch {
		case len(words) == 0:
		case words[0] == "sample":
			err = r.addSample(words[1:])
		case words[0] == "counters":
			r.counters = words[1:]
		case words[0] == "counted":
			err = r.addCounts(words[1:])
		}
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	if len(r.samples) == 0 {
		return nil, fmt.Errorf("found no samples")
	}
	return r, lines.Err()
}

func (r *iserResults) addSample(words []string) error {
	if len(words) != 7 {
		return fmt.Errorf("found %d fields, expected 7", len(words))
	}
	n, err := numbers(words[3:])
	if err != nil {
		return err
	}
	if n[0] <= 0 || n[1] <= 0 {
		return fmt.Errorf("found no I/O, expected some")
	}
	if r.samples[words[1]] == nil {
		r.samples[words[1]] = map[string][]iserSample{}
	}
	of := r.samples[words[1]]
	of[words[2]] = append(of[words[2]], iserSample{rate: n[1] / n[0] * 1e6, server: n[2] / n[1], guest: n[3] / n[1]})
	return nil
}

func (r *iserResults) addCounts(words []string) error {
	if len(words) != 2+2*len(r.counters) {
		return fmt.Errorf("found %d fields, expected %d", len(words), 2+2*len(r.counters))
	}
	n, err := numbers(words[1:])
	if err != nil {
		return err
	}
	var per []float64
	for i := range r.counters {
		per = append(per, (n[1+len(r.counters)+i]-n[1+i])/n[0])
	}
	r.counts[words[0]] = append(r.counts[words[0]], per)
	return nil
}

func numbers(words []string) ([]float64, error) {
	n := make([]float64, len(words))
	for i, w := range words {
		var err error
		if n[i], err = strconv.ParseFloat(w, 64); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// iserWorkloads are those of the scenario.
var iserWorkloads = []struct{ name, title string }{
	{"read-4k", "4 KiB random read, depth 32"}, {"write-4k", "4 KiB random write, depth 32"},
	{"read-256k", "256 KiB sequential read, depth 8"}, {"write-256k", "256 KiB sequential write, depth 8"},
}

// iserOthers are what Lunar's iSER is compared with, and what it is to reach of
// their rate; 0: that is not said.
var iserOthers = []struct {
	name, title string
	bound       float64
}{
	{"tgt-iser", "C tgt iSER", 1}, {"lio-iser", "LIO iSER", 0.7}, {"lunar-tcp", "Lunar TCP", 0}, {"tgt-tcp", "C tgt TCP", 0}, {"lio-tcp", "LIO TCP", 0},
}

const lunarISER = "lunar-iser"

// ratio is the median of the ratios of pairs; false: nothing to compare.
func (r *iserResults) ratio(workload, other string, of func(iserSample) float64) (float64, bool) {
	mine, theirs := r.samples[workload][lunarISER], r.samples[workload][other]
	var list []float64
	for i := range min(len(mine), len(theirs)) {
		if of(theirs[i]) > 0 {
			list = append(list, of(mine[i])/of(theirs[i]))
		}
	}
	return median(list), len(list) > 0
}

// repeats is how often each workload ran.
func (r *iserResults) repeats() (n int) {
	for _, of := range r.samples {
		n = max(n, len(of[lunarISER]))
	}
	return n
}

// rates compares I/O per second.
func (r *iserResults) rates() string {
	var b strings.Builder
	b.WriteString(head("I/O per second, Lunar iSER ×", " | reached"))
	for _, w := range iserWorkloads {
		fmt.Fprintf(&b, "| %s |", w.title)
		reached := true
		for _, o := range iserOthers {
			ratio, ok := r.ratio(w.name, o.name, func(s iserSample) float64 { return s.rate })
			reached = reached && ok && ratio >= o.bound
			b.WriteString(cell(ratio, ok))
		}
		fmt.Fprintf(&b, " %s |\n", yes(reached))
	}
	return b.String()
}

// costs compares CPU time per I/O, of the server's process and of the guest.
func (r *iserResults) costs() string {
	var b strings.Builder
	b.WriteString(head("CPU per I/O, Lunar iSER ×", ""))
	for _, w := range iserWorkloads {
		for _, part := range []struct {
			title string
			of    func(iserSample) float64
		}{
			{"server process", func(s iserSample) float64 { return s.server }}, {"whole guest", func(s iserSample) float64 { return s.guest }},
		} {
			fmt.Fprintf(&b, "| %s, %s |", w.title, part.title)
			for _, o := range iserOthers {
				b.WriteString(cell(r.ratio(w.name, o.name, part.of)))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// head is that of a table with a column for each of the others.
func head(title, more string) string {
	line, rule := "| "+title, "|---"+strings.Repeat("|--:", len(iserOthers))
	for _, o := range iserOthers {
		line += " | " + o.title
		if o.bound > 0 {
			line += fmt.Sprintf(" (≥ %g)", o.bound)
		}
	}
	if more != "" {
		rule += "|---"
	}
	return line + more + " |\n" + rule + "|\n"
}

func cell(ratio float64, ok bool) string {
	if !ok {
		return " – |"
	}
	return fmt.Sprintf(" %.2f |", ratio)
}

// countTable is what Lunar's RDMA did per I/O, medians over the repeats.
func (r *iserResults) countTable() string {
	var b strings.Builder
	b.WriteString("| per I/O")
	for _, name := range r.counters {
		b.WriteString(" | " + strings.ReplaceAll(name, "_", " "))
	}
	b.WriteString(" | operations |\n|---" + strings.Repeat("|--:", len(r.counters)+1) + "|\n")
	for _, w := range iserWorkloads {
		if len(r.counts[w.name]) == 0 {
			continue
		}
		b.WriteString("| " + w.title)
		operations := 0.0
		for i, name := range r.counters {
			per := median(column(r.counts[w.name], i))
			if slices.Contains([]string{"receives", "sends", "writes", "reads"}, name) {
				operations += per
			}
			fmt.Fprintf(&b, " | %.2f", per)
		}
		fmt.Fprintf(&b, " | %.2f |\n", operations)
	}
	return b.String()
}

func column(rows [][]float64, i int) (list []float64) {
	for _, row := range rows {
		list = append(list, row[i])
	}
	return list
}
