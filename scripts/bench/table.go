package main

import (
	"fmt"
	"slices"
	"strings"
)

// table lists every workload on all contenders; ours with their parts of the peers'
// rates, and whether these suffice.
func (c comparison) table(s samples) string {
	var b strings.Builder
	b.WriteString("| workload | server | IOPS (min to max) | MB/s | p50 µs | p99 µs | server CPU µs | client busy, % | slowest / mean |")
	for _, peer := range c.peers {
		fmt.Fprintf(&b, " of %s |", peer)
	}
	fmt.Fprintf(&b, " CPU of %s | reached |\n|---|---|%s---|\n", spdkName, strings.Repeat("--:|", 8+len(c.peers)))
	for _, w := range c.workloads {
		for _, name := range slices.Concat(c.beside, c.peers, c.ours) {
			if rounds := s[w.name]; len(values(rounds, name, iops)) > 0 {
				b.WriteString(c.row(w, name, rounds))
			}
		}
	}
	return b.String() + "\n"
}

func (c comparison) row(w workload, name string, rounds []round) string {
	of := func(m metric) float64 { return median(values(rounds, name, m)) }
	rates := values(rounds, name, iops)
	line := fmt.Sprintf("| %s | %s | %.0f (%.0f to %.0f) | %.0f | %s | %s | %.2f | %.0f | %.2f |", w.title, name,
		of(iops), slices.Min(rates), slices.Max(rates), of(megabytes), latency(of(p50)), latency(of(p99)), of(serverCPU), of(clientBusy), of(fairness))
	if !slices.Contains(c.ours, name) {
		return line + strings.Repeat(" |", len(c.peers)+2) + "\n"
	}
	for _, peer := range c.peers {
		line += " " + ofAnother(ratios(rounds, name, peer, iops)) + " |"
	}
	return line + fmt.Sprintf(" %s | %s |\n", ofAnother(ratios(rounds, name, spdkName, serverCPU)), c.judged(w, name, rounds))
}

// ofAnother is the median of ratios, if there are some.
func ofAnother(ratios []float64) string {
	if len(ratios) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", median(ratios))
}

// judged says what of a workload's goal is missed. Each part of a peer's rate that
// suffices is enough.
func (c comparison) judged(w workload, name string, rounds []round) string {
	bounds := map[string]float64{spdkName: w.goal.rate}
	if w.goal.rate == 0 {
		return "–"
	}
	for peer, bound := range c.enough {
		bounds[peer] = bound
	}
	enough, known := false, false
	for peer, bound := range bounds {
		if v := ratios(rounds, name, peer, iops); len(v) > 0 {
			known, enough = true, enough || median(v) >= bound
		}
	}
	var missed []string
	if known && !enough {
		missed = append(missed, "rate")
	}
	if v := ratios(rounds, name, spdkName, serverCPU); w.goal.cpu > 0 && len(v) > 0 && median(v) > w.goal.cpu {
		missed = append(missed, "CPU")
	}
	switch {
	case !known:
		return "–"
	case len(missed) > 0:
		return "**no**: " + strings.Join(missed, ", ")
	}
	return "yes"
}

// missing says who was not measured, and why.
func (c comparison) missing(f *field, s samples) string {
	var b strings.Builder
	for _, k := range f.named(slices.Concat(c.beside, c.peers)...) {
		measured := slices.ContainsFunc(c.workloads, func(w workload) bool { return len(values(s[w.name], k.name, iops)) > 0 })
		if k.absent != "" && !measured {
			fmt.Fprintf(&b, "Not measured: %s: %s.\n\n", k.name, k.absent)
		}
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "**no**"
}

// latency in µs, which not every client tells.
func latency(us float64) string {
	if us == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", us)
}
