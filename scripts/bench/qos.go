package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// qosCommand runs the papers' experiments on the token scheduler of a real
// server.
type qosCommand struct {
	Mode     string  `arg:"" optional:"" default:"quick" enum:"quick,full" help:"quick: about three minutes, a look only; full: about ten, for the record."`
	Document string  `default:"docs/reports/qos.md" help:"Document with the markers to write between, with the figures in a directory beside it; empty writes to standard output alone."`
	Scale    float64 `default:"100" help:"Divide Haechi's rates by this."`
}

// qosPlan is how long a run is: with rules, and without.
type qosPlan struct {
	warmup, runtime, bare time.Duration
	tries                 int // of a run that others disturb; the quietest counts
}

// qosQuiet is the share of the machine that others may take before a run is
// done again.
const qosQuiet = 0.15

var qosPlans = map[string]qosPlan{
	"quick": {1 * time.Second, 4 * time.Second, 2 * time.Second, 2},
	"full":  {2 * time.Second, 12 * time.Second, 6 * time.Second, 3},
}

// noisyName is what Only calls the neighbours.
const noisyName = "noisy"

// Run measures and writes the document.
func (c *qosCommand) Run(ctx context.Context, o *options) error {
	scenarios, loads := qosScenarios(c.Scale), saturations()
	if err := knownNames(o.Only, scenarios, loads); err != nil {
		return err
	}
	sections := map[string]string{}
	order, err := c.devices(ctx, o, scenarios, sections)
	if err != nil {
		return err
	}
	more, err := c.threads(ctx, o, loads, sections)
	if err != nil {
		return err
	}
	return o.record(c.Document, append(order, more...), sections)
}

// devices measures where a device is the bottleneck, and returns the order of its
// sections.
func (c *qosCommand) devices(ctx context.Context, o *options, scenarios []qosScenario, sections map[string]string) (order []string, err error) {
	p := qosPlans[c.Mode]
	results, err := p.runAll(ctx, scenarios, o.Only)
	if err != nil {
		return nil, err
	}
	if len(results) > 0 {
		order = []string{"criteria", "initiators"}
		sections["criteria"], sections["initiators"] = qosMachine(p, c.Scale)+criteriaTable(results), initiatorTables(results)
	}
	if !wanted(o, noisyName) {
		return order, nil
	}
	n, err := p.runNoisy(ctx)
	if err != nil {
		return nil, err
	}
	sections["noisy"] = noisyTable(n)
	if c.Document != "" && len(o.Only) == 0 {
		dir := strings.TrimSuffix(c.Document, filepath.Ext(c.Document))
		err = drawQoS(dir, results, n)
	}
	return append(order, "noisy"), err
}

// threads measures where an event thread is the bottleneck.
func (c *qosCommand) threads(ctx context.Context, o *options, loads []saturation, sections map[string]string) (order []string, err error) {
	s, err := readSamples(o.Samples)
	if err != nil {
		return nil, err
	}
	m := openSaturator(o, saturationPlans[c.Mode])
	if err := errors.Join(m.measure(ctx, o.Only, s), s.write(o.Samples)); err != nil {
		return nil, err
	}
	if len(s) == 0 {
		return nil, nil
	}
	about := fmt.Sprintf("%d MiB of data in memory", saturationMiB)
	sections["saturated"] = machine(o, m.client.plan, s, about) + saturationTable(loads, s)
	sections["turns"] = turnTable(loads, s)
	return []string{"saturated", "turns"}, nil
}

// saturationPlans are how long loads of an event thread are measured.
var saturationPlans = map[string]plan{
	"quick": {1, 1 * time.Second, 1500 * time.Millisecond, 1},
	"full":  {3, 1 * time.Second, 3 * time.Second, 1},
}

func knownNames(names []string, scenarios []qosScenario, loads []saturation) error {
	for _, name := range names {
		if name != noisyName && !slices.ContainsFunc(scenarios, func(s qosScenario) bool { return s.name == name }) &&
			!slices.ContainsFunc(loads, func(l saturation) bool { return l.name == name }) {
			return fmt.Errorf("no scenario or load %q", name)
		}
	}
	return nil
}

// runAll runs the scenarios that are asked for, each load once without rules.
func (p qosPlan) runAll(ctx context.Context, scenarios []qosScenario, only []string) (results []qosResult, err error) {
	unscheduled := map[string]*qosOutcome{}
	for _, s := range scenarios {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		r := qosResult{scenario: s}
		key := s.loadKey()
		if unscheduled[key] == nil {
			if unscheduled[key], err = p.quietest(ctx, s, false, p.bare); err != nil {
				return nil, fmt.Errorf("%s without rules: %w", s.name, err)
			}
		}
		r.unscheduled, r.outcome = unscheduled[key], unscheduled[key]
		if s.ruled() {
			if r.outcome, err = p.quietest(ctx, s, true, p.runtime); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
		}
		r.verdict = s.judge(r.outcome, r.unscheduled)
		results = append(results, r)
	}
	return results, nil
}

// loadKey tells loads apart: two scenarios of one key differ in rules alone.
func (s *qosScenario) loadKey() string {
	key := fmt.Sprint(s.rate, s.overlap, s.units, s.drop)
	for _, c := range s.initiators {
		key += fmt.Sprint(" ", c.units, c.depth, c.rate, c.card)
	}
	return key
}

func (p qosPlan) runNoisy(ctx context.Context) (n noisyRuns, err error) {
	for _, r := range []struct {
		outcome    **qosOutcome
		neighbours int
		ruled      bool
	}{{&n.alone, 0, false}, {&n.ruled, 2, true}, {&n.unscheduled, 2, false}} {
		if *r.outcome, err = p.quietest(ctx, noisy(r.neighbours), r.ruled, p.runtime); err != nil {
			return n, fmt.Errorf("noisy neighbours: %w", err)
		}
	}
	return n, nil
}

// quietest runs a scenario, again if others take the machine meanwhile, and
// returns the run that they disturbed least.
func (p qosPlan) quietest(ctx context.Context, s qosScenario, ruled bool, runtime time.Duration) (best *qosOutcome, err error) {
	for range p.tries {
		o, err := s.run(ctx, ruled, p.warmup, runtime)
		if err != nil {
			return nil, err
		}
		if best == nil || o.foreign < best.foreign {
			best = o
		}
		if best.foreign < qosQuiet {
			break
		}
	}
	return best, nil
}
