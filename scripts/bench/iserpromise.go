package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/internal/initiator/load"
)

// iserPromiseCommand measures a reservation over RDMA in a guest of the lab.
type iserPromiseCommand struct {
	rdmaGuest
	Seconds  int    `default:"3" help:"How long each load is measured each time."`
	Document string `default:"docs/reports/qos.md" help:"Document with the markers to write between; empty writes to standard output alone."`
}

// Run measures and writes the section.
func (c *iserPromiseCommand) Run(ctx context.Context, o *options) error {
	text, err := c.said(ctx, "iser-promises", fmt.Sprint(max(o.Repeats, 2), " ", c.Seconds))
	if err != nil {
		return err
	}
	s, err := parsePromised(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Log, err)
	}
	about := fmt.Sprintf("%s; a guest under emulation with 2 CPUs and Soft-RoCE, fio over the kernel's ib_iser, 32 MiB in memory. %d interleaved repeats of %d s; medians, and medians of the ratios within a repeat.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), len(s["depth 1"]), c.Seconds)
	return o.record(c.Document, []string{"saturated-iser"}, map[string]string{"saturated-iser": about + saturationTable(iserSaturations(s), s)})
}

// iserSaturations are the loads of the scenario, by their depth; a part of what gold had
// alone is reserved each time, here of the median.
func iserSaturations(s samples) (list []saturation) {
	for depth, part := range reservedParts {
		name := fmt.Sprintf("depth %d", depth)
		first, hog1, hog2 := gold(depth), readingHog, readingHog
		hog1.name, hog2.name = "hog1", "hog2"
		l := saturation{name: name, title: name + ", two read at depth 32, iSER", parties: []party{first, hog1, hog2}, goal: promise{p99: 3, total: leastTotal}}
		l.goal.rate = part * median(values(s[name], resultOf(caseAlone, goldName), iops))
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b saturation) int { return strings.Compare(a.name, b.name) })
	return list
}

// reservedParts are what the scenario reserves of the rate alone, by depth.
var reservedParts = map[int]float64{1: 0.6, 4: 0.3}

// promisedCases are the scenario's words for cases.
var promisedCases = map[string]string{"alone": caseAlone, "bare": caseBare, "ruled": caseRuled}

// parsePromised reads what the scenario iser-promises says:
//
//	promised REPEAT CASE-DEPTH PARTY IOPS P50-MICROSECONDS P99-MICROSECONDS BYTES-PER-SECOND
func parsePromised(text string) (samples, error) {
	s := samples{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] != "promised" {
			continue
		}
		if err := s.addPromised(words[1:]); err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("found nothing promised")
	}
	return s, lines.Err()
}

func (s samples) addPromised(words []string) error {
	if len(words) != 7 {
		return fmt.Errorf("found %d words, expected 7", len(words))
	}
	number := make([]float64, 7)
	for _, n := range []int{0, 3, 4, 5, 6} {
		v, err := strconv.ParseFloat(words[n], 64)
		if err != nil {
			return err
		}
		number[n] = v
	}
	word, depth, _ := strings.Cut(words[1], "-")
	name, found := promisedCases[word]
	if !found {
		return fmt.Errorf("no case %q", word)
	}
	key, repeat := "depth "+depth, int(number[0])
	if repeat < 1 || repeat > len(s[key])+1 {
		return fmt.Errorf("found repeat %d after %d", repeat, len(s[key]))
	}
	if repeat > len(s[key]) {
		s[key] = append(s[key], round{Results: map[string]load.Result{}})
	}
	s[key][repeat-1].Results[resultOf(name, words[2])] = load.Result{
		IOPS: number[3], Latency: load.Latency{P50: number[4], P99: number[5]}, BytesPerSecond: number[6],
	}
	return nil
}
