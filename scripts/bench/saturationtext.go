package main

import (
	"fmt"
	"math"
	"strings"

	"lunar/internal/initiator/load"
)

// saturationLine says what a round brought.
func saturationLine(l saturation, r round) string {
	var b strings.Builder
	for _, c := range l.cases() {
		g := r.Results[resultOf(c.name, l.parties[0].name)]
		fmt.Fprintf(&b, "%s %.0f (p99 %.0f µs), all %.0f MB/s; ", c.name, g.IOPS, g.Latency.P99, totalOf(l, r, c.name)/1e6)
	}
	return b.String() + fmt.Sprintf("others %.0f %%", 100*r.Foreign)
}

// totalOf is what all parties of a case moved, in bytes per second.
func totalOf(l saturation, r round, name string) (sum float64) {
	for _, p := range l.parties {
		sum += r.Results[resultOf(name, p.name)].BytesPerSecond
	}
	return sum
}

// saturationVerdict is what rules reached, as medians over the rounds.
type saturationVerdict struct {
	rate, p50, p99 float64
	times50        float64 // of alone
	times99        float64 // of alone
	total          float64 // part of what all did without rules
	capped         float64 // the limited one's rate; 0: nobody is
	reached        bool
}

// mostOff is how far from its limit the rate of one who asks for more may be.
const mostOff = 0.01

// verdict judges a case of a load against what was without rules and alone.
func (l *saturation) verdict(rounds []round, name string) saturationVerdict {
	first := l.parties[0].name
	alone, own := resultOf(caseAlone, first), resultOf(name, first)
	var totals []float64
	for _, r := range rounds {
		totals = append(totals, totalOf(*l, r, name)/totalOf(*l, r, caseBare))
	}
	v := saturationVerdict{
		rate: median(values(rounds, own, iops)), p50: median(values(rounds, own, p50)), p99: median(values(rounds, own, p99)),
		times50: median(ratios(rounds, own, alone, p50)), times99: median(ratios(rounds, own, alone, p99)),
		total: median(totals),
	}
	g := l.goal
	v.reached = v.rate >= g.rate && v.total >= g.total && keeps(v.times50, g.p50) && keeps(v.times99, g.p99) && keeps(v.p99, g.p99us)
	for _, p := range l.parties {
		if p.limit > 0 {
			v.capped = median(values(rounds, resultOf(name, p.name), iops))
			v.reached = v.reached && math.Abs(v.capped/float64(p.limit)-1) <= mostOff
		}
	}
	return v
}

// keeps reports whether a value keeps to a bound; 0 is none.
func keeps(v, bound float64) bool { return bound == 0 || v <= bound }

// text is what a load is to reach.
func (g promise) text() string {
	var list []string
	for _, part := range []struct {
		format string
		value  float64
	}{{"≥ %.0f", g.rate}, {"p50 ≤ %.0f×", g.p50}, {"p99 ≤ %.0f×", g.p99}, {"p99 ≤ %.0f µs", g.p99us}, {"all ≥ %.0f %%", 100 * g.total}} {
		if part.value > 0 {
			list = append(list, fmt.Sprintf(part.format, part.value))
		}
	}
	return strings.Join(list, ", ")
}

// saturationTable compares alone, without rules and with rules.
func saturationTable(loads []saturation, s samples) string {
	var b strings.Builder
	b.WriteString("| gold | alone | p50, p99 µs | without rules | p50, p99 µs | with rules | p50, p99 µs | p99 / alone | all / without rules | limited to 5,000 | to reach | reached |\n" +
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|---|\n")
	for _, l := range loads {
		rounds := s[l.name]
		if len(rounds) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", l.title)
		for _, c := range saturationCases {
			own := resultOf(c.name, l.parties[0].name)
			fmt.Fprintf(&b, " %.0f | %.0f, %.0f |", median(values(rounds, own, iops)), median(values(rounds, own, p50)), median(values(rounds, own, p99)))
		}
		v := l.verdict(rounds, caseRuled)
		fmt.Fprintf(&b, " %.1f | %.0f %% | %s | %s | %s |\n", v.times99, 100*v.total, amount(v.capped), l.goal.text(), yes(v.reached))
	}
	return b.String()
}

// turnTable is the curve over the length of a turn.
func turnTable(loads []saturation, s samples) string {
	var b strings.Builder
	b.WriteString("| load | turn | gold | p50 µs | p99 µs | hog | all / without rules | CPU µs per command of all |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, l := range loads {
		rounds := s[l.name]
		if !l.curve || len(rounds) == 0 {
			continue
		}
		for _, name := range append([]string{caseBare, turnLengths[0], caseRuled}, turnLengths[1:]...) {
			v := l.verdict(rounds, name)
			hog := median(values(rounds, resultOf(name, hogName), iops))
			fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f %% | %.2f |\n", l.title, turnTitle(name), v.rate, v.p50, v.p99, hog, 100*v.total, cpuOfAll(l, rounds, name))
		}
	}
	return b.String()
}

// turnTitle names a point of the curve.
func turnTitle(name string) string {
	switch name {
	case caseRuled:
		return "30us (the default)"
	case turnLengths[len(turnLengths)-1]:
		return name + " (never over)"
	}
	return name
}

// cpuOfAll is the server's time for each command, whoever asked for it.
func cpuOfAll(l saturation, rounds []round, name string) float64 {
	var v []float64
	for _, r := range rounds {
		all, seconds := 0.0, 0.0
		for _, p := range l.parties {
			one := r.Results[resultOf(name, p.name)]
			all += float64(one.Reads + one.Writes)
			seconds = max(seconds, serverSeconds(one))
		}
		v = append(v, 1e6*seconds/all)
	}
	return median(v)
}

func serverSeconds(r load.Result) float64 {
	if r.ServerCPU == nil {
		return 0
	}
	return r.ServerCPU.Seconds
}
