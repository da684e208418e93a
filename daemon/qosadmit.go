package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/target"
)

// servers are the servers any of which may have to serve a volume, by its name: backing
// devices, or event threads.
type servers map[string][]string

// devicesOf are the volumes' backing devices, of which each has one.
func (q *qos) devicesOf() servers {
	at := servers{}
	for volume, device := range q.devices.Of(q.cfg) {
		at[volume] = []string{device}
	}
	return at
}

// admit compares what a policy reserves with what devices can do, in tokens/s, 0
// if that is not known. It counts the flows of the sessions that there are, and
// one initiator for each other name and pattern. The error wraps a
// *haechi.AdmissionError.
func (q *qos) admit(p *scheduler.Policy, connected []scheduler.Placed, capacities map[string]int64, overcommit bool) (outcome, error) {
	flows := expectedFlows(q.cfg, q.devicesOf(), p, connected)
	o, err := judge(p, flows, "device", capacities, overcommit)
	if err == nil && o.Note == "" {
		o.Note = unknown(p, flows, capacities)
	}
	return o, err
}

// admitThreads compares it with what event threads can do, of which each volume has some.
// One that was never full may do anything, and so may those of volumes to come.
func (q *qos) admitThreads(p *scheduler.Policy, connected []scheduler.Flow, at servers, threads []scheduler.ThreadStatus, overcommit bool) (outcome, error) {
	capacities := map[string]int64{}
	for _, t := range threads {
		capacities[t.Name] = t.Capacity
	}
	return judge(p, expectedFlows(q.cfg, at, p, mapped(q.cfg, at, connected)), "event thread", capacities, overcommit)
}

// judge is the admission of flows to servers of a kind.
func judge(p *scheduler.Policy, flows []scheduler.Placed, kind string, capacities map[string]int64, overcommit bool) (outcome, error) {
	err := p.Admit(flows, capacities)
	var refused *haechi.AdmissionError
	if errors.As(err, &refused) {
		refused.Kind = kind
		sum := arithmetic(p, flows, func(devices []string) bool { return within(devices, refused.Devices) })
		if overcommit {
			return outcome{Note: fmt.Sprintf("%v: %s", err, sum), Standing: true}, nil
		}
		return outcome{}, fmt.Errorf("qos: %w: %s; expected less, or qos.overcommit: true", err, sum)
	}
	return outcome{}, err
}

// unknown says what is reserved of devices of which nobody knows what they can
// do; empty: nothing.
func unknown(p *scheduler.Policy, flows []scheduler.Placed, capacities map[string]int64) string {
	sum, devices := int64(0), []string{}
	lacks := func(devices []string) bool {
		return slices.ContainsFunc(devices, func(d string) bool { return capacities[d] == 0 })
	}
	for _, c := range p.Claims(flows) {
		if !lacks(c.Devices) {
			continue
		}
		sum += c.Tokens
		for _, d := range c.Devices {
			if capacities[d] == 0 && !slices.Contains(devices, d) {
				devices = append(devices, d)
			}
		}
	}
	if sum == 0 {
		return ""
	}
	slices.Sort(devices)
	return fmt.Sprintf("reservations add up to %d tokens per second, which were not compared with a capacity, for none is known of %s: %s",
		sum, strings.Join(devices, ", "), arithmetic(p, flows, lacks))
}

// within reports whether all of some devices are among others.
func within(some, others []string) bool {
	return !slices.ContainsFunc(some, func(d string) bool { return !slices.Contains(others, d) })
}

// arithmetic says what a sum of reservations is made of, of those on chosen
// devices.
func arithmetic(p *scheduler.Policy, flows []scheduler.Placed, chosen func(devices []string) bool) string {
	entities := map[*scheduler.Rule]int64{}
	for _, c := range p.Claims(flows) {
		if chosen(c.Devices) {
			entities[c.Rule]++
		}
	}
	var parts []string
	for i := range p.Rules() {
		r := &p.Rules()[i]
		if n := entities[r]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d × %d", r.Name, n, p.Cost().Tokens(r.Reservation)))
		}
	}
	return strings.Join(parts, " + ") + " (a pattern with * or ? counts as one initiator at least, and what lies inside another reservation not again)"
}

// expectedFlows are those that connected initiators may have, and for each name
// and pattern of the rules that none of them is counted for, those of one. A pattern serves as
// the name: it matches itself, and whatever is more specific does not match it.
func expectedFlows(cfg *conf.Config, at servers, p *scheduler.Policy, connected []scheduler.Placed) []scheduler.Placed {
	flows, seen := slices.Clone(connected), map[string]bool{}
	add := func(initiator string) {
		if !seen[initiator] {
			seen[initiator] = true
			flows = append(flows, flowsFor(cfg, at, initiator)...)
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
func stands(p *scheduler.Policy, r *scheduler.Rule, pattern string, connected []scheduler.Placed) bool {
	return slices.ContainsFunc(connected, func(f scheduler.Placed) bool {
		if !scheduler.Matches(pattern, f.Initiator) {
			return false
		}
		entities := p.Resolve(f.Flow)
		return slices.ContainsFunc(entities[:], func(e scheduler.Entity) bool { return e.Rule == r })
	})
}

// flowsFor are the logical units that an initiator may use. An initiator that may
// use none is taken to be everywhere, since it may be given any.
func flowsFor(cfg *conf.Config, at servers, initiator string) (flows []scheduler.Placed) {
	for i := range cfg.Targets {
		for _, l := range visible(cfg, &cfg.Targets[i], initiator) {
			flows = at.append(flows, scheduler.Flow{Initiator: initiator, Target: cfg.Targets[i].Name, LUN: uint64(l.LUN)}, l.Volume)
		}
	}
	if len(flows) > 0 {
		return flows
	}
	for i := range cfg.Volumes {
		flows = at.append(flows, scheduler.Flow{Initiator: initiator}, cfg.Volumes[i].Name)
	}
	return flows
}

// append places a flow to a volume.
func (at servers) append(flows []scheduler.Placed, f scheduler.Flow, volume string) []scheduler.Placed {
	for _, place := range at[volume] {
		flows = append(flows, scheduler.Placed{Flow: f, Device: place})
	}
	return flows
}

// visible are the LUNs that a target's rules show an initiator, whatever the
// address that it comes from.
func visible(cfg *conf.Config, t *conf.Target, initiator string) (luns []conf.LUN) {
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
			if !slices.ContainsFunc(luns, func(o conf.LUN) bool { return o.LUN == l.LUN && o.Volume == l.Volume }) {
				luns = append(luns, l)
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

// mapped are those of the flows of sessions that a configuration has, too. While
// it is put into force sessions still use what it takes away.
func mapped(cfg *conf.Config, at servers, flows []scheduler.Flow) (left []scheduler.Placed) {
	for _, f := range flows {
		t := cfg.Target(f.Target)
		if t == nil {
			continue
		}
		for _, l := range visible(cfg, t, f.Initiator) {
			if uint64(l.LUN) == f.LUN {
				left = at.append(left, f, l.Volume)
			}
		}
	}
	return left
}

// checkQoS says how the configured rules stand to the configured capacity.
func checkQoS(cfg *conf.Config) (notes []string, err error) {
	q := &qos{cfg: cfg}
	policy, err := q.policy(configuredSet(&cfg.QoS))
	if err != nil {
		return nil, err
	}
	o, err := q.admit(policy, nil, q.devices.Capacities(cfg), cfg.QoS.Overcommit)
	if o.Note != "" {
		notes = append(notes, "qos: "+o.Note)
	}
	return notes, err
}
