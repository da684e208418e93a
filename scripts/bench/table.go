package main

import (
	"fmt"
	"slices"
	"strings"
)

// requirement is a figure that the project wants to reach.
type requirement struct {
	workload string
	title    string
	metric   metric
	format   string
	bound    float64
	atMost   bool // bound is an upper one
	alone    bool // of lunar's figure itself, not of the ratio
}

// limitRequirements bound what lunar reaches of the loopback limit.
var limitRequirements = []requirement{
	{"read-1", "4 KiB read, depth 1, per second", iops, "%.0f", 0.6, false, false},
	{"read-32", "4 KiB random read, depth 32, per second", iops, "%.0f", 0.6, false, false},
	{"read-128", "4 KiB random read, depth 128, per second", iops, "%.0f", 0.6, false, false},
	{"read-32", "server CPU per 4 KiB read, depth 32, µs", serverCPU, "%.2f", 2, true, false},
}

var requirements = []requirement{
	{"read-32", "4 KiB random read, depth 32, IOPS", iops, "%.0f", 8, false, false},
	{"read-8x32", "4 KiB random read, 8 connections of depth 32, IOPS", iops, "%.0f", 8, false, false},
	{"read-1", "4 KiB random read, depth 1, mean latency, µs", latencyMean, "%.1f", 0.5, true, false},
	{"write-32", "4 KiB random write, depth 32, write: back, IOPS", iops, "%.0f", 6, false, false},
	{"read-256k", "256 KiB read, depth 8, MB/s", megabytes, "%.0f", 3, false, false},
	{"write-256k", "256 KiB write, depth 8, write: back, MB/s", megabytes, "%.0f", 1.5, false, false},
	{"read-32", "server CPU per 4 KiB read, depth 32, µs", serverCPU, "%.2f", 0.12, true, false},
	{"write-32", "server CPU per 4 KiB write, depth 32, µs", serverCPU, "%.2f", 0.25, true, false},
	{"read-32-asleep", "4 KiB random read, depth 32, client that sleeps, IOPS", iops, "%.0f", 4, false, false},
	{"read-8x32", "8 connections of depth 32, slowest / mean", fairness, "%.2f", 0.8, false, true},
}

// requirementTable compares what was measured with what is wanted.
func requirementTable(requirements []requirement, s samples) string {
	return comparison(requirements, s, tgt, "| | C tgt | Lunar | Lunar / tgt | to reach | reached |\n")
}

// limitTable compares lunar with what the machine's TCP can do.
func limitTable(s samples) string {
	return comparison(limitRequirements, s, limit, "| | loopback limit | Lunar | Lunar / limit | to reach | reached |\n")
}

func comparison(requirements []requirement, s samples, with int, head string) string {
	var b strings.Builder
	b.WriteString(head + "|---|--:|--:|--:|--:|---|\n")
	for _, r := range requirements {
		if pairs := s[r.workload]; len(pairs) > 0 {
			b.WriteString(r.row(pairs, with))
		}
	}
	return b.String() + "\n"
}

func (r requirement) row(pairs []pair, with int) string {
	mine := median(values(pairs, lunar, r.metric))
	ratio := median(ratios(pairs, with, r.metric))
	judged, unit := ratio, "×"
	if r.alone {
		judged, unit = mine, ""
	}
	sign, reached := "≥", judged >= r.bound
	if r.atMost {
		sign, reached = "≤", judged <= r.bound
	}
	return fmt.Sprintf("| %s | %s | %s | %.2f× | %s %g%s | %s |\n", r.title,
		fmt.Sprintf(r.format, median(values(pairs, with, r.metric))), fmt.Sprintf(r.format, mine),
		ratio, sign, r.bound, unit, yes(reached))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}

// detailTable lists every workload on both servers.
func detailTable(s samples, workloads []workload) string {
	var b strings.Builder
	b.WriteString("| workload | server | IOPS (min to max) | MB/s | p50 µs | p99 µs | server CPU µs | client busy, % | slowest / mean |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range workloads {
		for n, name := range serverNames[:limit] {
			b.WriteString(detailRow(w.title, name, s[w.name], n))
		}
	}
	return b.String()
}

func detailRow(title, name string, pairs []pair, n int) string {
	of := func(m metric) float64 { return median(values(pairs, n, m)) }
	rates := values(pairs, n, iops)
	return fmt.Sprintf("| %s | %s | %.0f (%.0f to %.0f) | %.0f | %s | %s | %.2f | %.0f | %.2f |\n",
		title, name, of(iops), slices.Min(rates), slices.Max(rates), of(megabytes), latency(of(p50)), latency(of(p99)), of(serverCPU), of(clientBusy), of(fairness))
}

// latency in µs, which not every client tells.
func latency(us float64) string {
	if us == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", us)
}
