package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/scheduler"
	"lunar/target"
)

// outcome is how rules were admitted.
type outcome struct {
	Note     string // what there is to say; empty: nothing
	Standing bool   // the reservations are more than the capacity
}

// admit compares what a policy reserves with a capacity in tokens/s, 0 if that
// is not known. It counts the flows of the sessions that there are, and one
// initiator for each other name and pattern. The error wraps a
// *scheduler.AdmissionError.
func (q *qos) admit(p *scheduler.Policy, connected []scheduler.Flow, capacity int64, overcommit bool) (outcome, error) {
	flows := expectedFlows(q.cfg, p, connected)
	err := p.Admit(flows, scheduler.Admission{Capacity: capacity})
	var refused *scheduler.AdmissionError
	if !errors.As(err, &refused) {
		return outcome{}, err
	}
	sum := arithmetic(p, flows)
	switch {
	case capacity == 0:
		return outcome{Note: fmt.Sprintf("reservations add up to %d tokens per second, which were not compared with a capacity, for none is known: %s", refused.Asked, sum)}, nil
	case overcommit:
		return outcome{Note: fmt.Sprintf("%v: %s", err, sum), Standing: true}, nil
	}
	return outcome{}, fmt.Errorf("qos: %w: %s; expected less, or qos.overcommit: true", err, sum)
}

// arithmetic says what a sum of reservations is made of.
func arithmetic(p *scheduler.Policy, flows []scheduler.Flow) string {
	counted, entities := map[string]bool{}, map[*scheduler.Rule]int64{}
	for _, f := range flows {
		for _, e := range p.Resolve(f) {
			if e.Rule != nil && !counted[e.Key] {
				counted[e.Key] = true
				entities[e.Rule]++
			}
		}
	}
	var parts []string
	for i := range p.Rules() {
		r := &p.Rules()[i]
		if tokens, n := p.Cost().Tokens(r.Reservation), entities[r]; tokens > 0 && n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d × %d", r.Name, n, tokens))
		}
	}
	return strings.Join(parts, " + ") + " (a pattern with * or ? counts as one initiator at least, and what lies inside another reservation not again)"
}

// expectedFlows are those that connected initiators may have, and for each name
// and pattern of the rules that none of them is counted for, those of one. A pattern serves as
// the name: it matches itself, and whatever is more specific does not match it.
func expectedFlows(cfg *conf.Config, p *scheduler.Policy, connected []scheduler.Flow) []scheduler.Flow {
	flows, seen := slices.Clone(connected), map[string]bool{}
	add := func(initiator string) {
		if !seen[initiator] {
			seen[initiator] = true
			flows = append(flows, flowsFor(cfg, p, initiator)...)
		}
	}
	for _, f := range connected {
		add(f.Initiator)
	}
	for i := range p.Rules() {
		r := &p.Rules()[i]
		for _, pattern := range p.Patterns(r) {
			if !stands(p, r, pattern, connected) {
				add(pattern)
			}
		}
	}
	return flows
}

// stands reports whether a connected initiator is counted for the pattern of a
// rule.
func stands(p *scheduler.Policy, r *scheduler.Rule, pattern string, connected []scheduler.Flow) bool {
	return slices.ContainsFunc(connected, func(f scheduler.Flow) bool {
		if !scheduler.Matches(pattern, f.Initiator) {
			return false
		}
		entities := p.Resolve(f)
		return slices.ContainsFunc(entities[:], func(e scheduler.Entity) bool { return e.Rule == r })
	})
}

// flowsFor are the logical units that an initiator may use; where no rule tells
// them apart, one is enough.
func flowsFor(cfg *conf.Config, p *scheduler.Policy, initiator string) []scheduler.Flow {
	flows := []scheduler.Flow{}
	for i := range cfg.Targets {
		for _, lun := range visible(cfg, &cfg.Targets[i], initiator) {
			flows = append(flows, scheduler.Flow{Initiator: initiator, Target: cfg.Targets[i].Name, LUN: lun})
		}
	}
	apart := slices.ContainsFunc(p.Rules(), func(r scheduler.Rule) bool { return r.Target != "" || r.LUN != nil })
	switch {
	case len(flows) == 0:
		return []scheduler.Flow{{Initiator: initiator}}
	case !apart:
		return flows[:1]
	}
	return flows
}

// visible are the LUNs that a target's rules show an initiator, whatever the
// address that it comes from.
func visible(cfg *conf.Config, t *conf.Target, initiator string) (luns []uint64) {
	for i := range t.Access {
		a := &t.Access[i]
		names, everywhere := a.Match.Initiators, len(a.Match.Networks) == 0
		if g := cfg.AuthGroup(a.AuthGroup); g != nil {
			names = slices.Concat(names, g.Match.Initiators)
			everywhere = everywhere && len(g.Match.Networks) == 0
		}
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return scheduler.Matches(n, initiator) }) {
			continue
		}
		for _, l := range a.LUNs {
			if !slices.Contains(luns, uint64(l.LUN)) {
				luns = append(luns, uint64(l.LUN))
			}
		}
		if everywhere {
			return luns
		}
	}
	return luns
}

// flowsOf are what sessions use.
func flowsOf(sessions []target.SessionStats) (flows []scheduler.Flow) {
	for _, n := range sessions {
		for _, l := range n.LUNs {
			flows = append(flows, scheduler.Flow{Initiator: n.Initiator, Target: n.Target, LUN: uint64(l.LUN)})
		}
	}
	return flows
}

// checkQoS says how the configured rules stand to the configured capacity.
func checkQoS(cfg *conf.Config) (notes []string, err error) {
	q := &qos{cfg: cfg}
	policy, err := q.policy(configuredSet(&cfg.QoS))
	if err != nil {
		return nil, err
	}
	o, err := q.admit(policy, nil, cfg.QoS.Capacity, cfg.QoS.Overcommit)
	if o.Note != "" {
		notes = append(notes, "qos: "+o.Note)
	}
	return notes, err
}
