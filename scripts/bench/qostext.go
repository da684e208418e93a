package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// qosResult is a scenario with what it brought.
type qosResult struct {
	scenario             qosScenario
	outcome, unscheduled *qosOutcome
	verdict              qosVerdict
}

// criteriaTable compares all scenarios with what is wanted.
func criteriaTable(results []qosResult) string {
	var b strings.Builder
	b.WriteString("| scenario | the paper shows | expected here | worst period, server's count | worst second, client's count | most of a limit | total / unscheduled | others on the machine | reached |\n" +
		"|---|---|---|--:|--:|--:|--:|--:|---|\n")
	for _, r := range results {
		v := r.verdict
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %.0f %% | %s |\n", r.scenario.title, r.scenario.paper, r.scenario.expected,
			share(v.period), share(v.second), share(v.limit), share(v.total), 100*r.outcome.foreign, yes(v.reached))
	}
	return b.String()
}

// share is a share in percent.
func share(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*v)
}

// initiatorTables list who got what in each scenario.
func initiatorTables(results []qosResult) string {
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintf(&b, "%s (`%s`):\n\n| | reservation | limit | asks for | unscheduled | mean | worst second | best second | worst period | p99 ms |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
			r.scenario.title, r.scenario.name)
		for i := range r.scenario.initiators {
			b.WriteString(r.initiatorRow(i))
		}
		fmt.Fprintf(&b, "| all | | | | %.0f | %.0f | | | | |\n\n", r.unscheduled.rate(), r.outcome.rate())
		if r.scenario.figure {
			fmt.Fprintf(&b, "![%s](qos/%s.svg)\n\n", r.scenario.title, r.scenario.name)
		}
	}
	return b.String()
}

func (r *qosResult) initiatorRow(i int) string {
	c, o := r.scenario.initiators[i], r.outcome
	return fmt.Sprintf("| C%d | %s | %s | %s | %.0f | %.0f | %d | %d | %s | %.1f |\n", i+1, amount(float64(c.reservation)), amount(float64(c.limit)), amount(c.rate),
		r.unscheduled.rateOf(i), o.rateOf(i), lowest(o.seconds(i)), highest(o.seconds(i)), share(o.leastPeriod(i)), o.p99(i))
}

// amount is a rate, which 0 means there is none of.
func amount(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", v)
}

// noisyRuns are the reserved initiator alone, and with its neighbours under
// rules and without.
type noisyRuns struct{ alone, ruled, unscheduled *qosOutcome }

// noisyTable compares its latencies.
func noisyTable(n noisyRuns) string {
	var b strings.Builder
	b.WriteString("| | its rate | total | p50 ms | p99 ms | p99 / alone | to reach | reached |\n|---|--:|--:|--:|--:|--:|--:|---|\n")
	alone := n.alone.p99(0)
	row := func(title string, o *qosOutcome, bound string, reached string) {
		fmt.Fprintf(&b, "| %s | %.0f | %.0f | %.2f | %.2f | %.2f | %s | %s |\n", title, o.rateOf(0), o.rate(),
			float64(o.latency[0].ValueAtQuantile(50))/1e6, o.p99(0), o.p99(0)/alone, bound, reached)
	}
	row("alone", n.alone, "", "")
	row("two neighbours at depth 128, with rules", n.ruled, fmt.Sprintf("< %g", mostDisturbed), yes(n.ruled.p99(0) < mostDisturbed*alone))
	row("two neighbours at depth 128, without rules", n.unscheduled, fmt.Sprintf("≥ %g", leastUnscheduled), yes(n.unscheduled.p99(0) >= leastUnscheduled*alone))
	return b.String() + "\n![latency](qos/noisy.svg)\n"
}

// qosMachine says where and how the numbers came about.
func qosMachine(p qosPlan, scale float64) string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	return fmt.Sprintf("%s; %s, %s CPUs, %s. Haechi's rates divided by %g, pShift's by %g; %v measured after %v in each run, %v where it is without rules.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), cpuField(info, "model name"), cpuCount(info), kernel(), scale, pshiftScale, p.runtime, p.warmup, p.bare)
}
