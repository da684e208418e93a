package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/target"
)

// Rules implements server.Source.
func (s *source) Rules() control.QoS {
	state, served := s.daemon.rules(), s.daemon.QoS("")
	cost := state.cfg.QoS.Cost
	q := control.QoS{
		RuleSet: shownSet(state.Live), Configured: shownSet(state.Configured),
		Capacity: s.capacity(&state, &served),
		Cost:     control.Cost{UnitBytes: cost.Unit, WritePercent: cost.WritePercent},
		Window:   state.cfg.QoS.Window,
		Network:  shownNetwork(&state.cfg.QoS.Network),
		Changed:  state.Changed, Lasting: control.Lasting(state.Changed),
	}
	if !state.Outcome.Standing {
		q.Note = state.Outcome.Note
	}
	return q
}

func (s *source) capacity(state *qosState, served *target.QoSStatus) control.Capacity {
	c := control.Capacity{Devices: []control.Device{}, Threads: []control.ThreadCapacity{}, Bottleneck: []string{}}
	for _, t := range served.Threads {
		c.Threads = append(c.Threads, control.ThreadCapacity{Name: t.Name, Tokens: t.Capacity, Served: t.Served, Load: t.Load})
		if t.Full() {
			c.Bottleneck = append(c.Bottleneck, control.ThreadBottleneck(t.Name))
		}
	}
	configured, volumes := s.daemon.qos.devices.Capacities(state.cfg), map[string][]string{}
	for volume, device := range s.daemon.qos.devices.Of(state.cfg) {
		volumes[device] = append(volumes[device], volume)
	}
	for _, d := range served.Devices {
		source := "learnt"
		switch {
		case configured[d.Name] > 0:
			source = "configured"
		case state.measured[d.Name] > 0:
			source = "measured"
		}
		c.Devices = append(c.Devices, control.Device{
			Name: d.Name, Volumes: append([]string{}, slices.Sorted(slices.Values(volumes[d.Name]))...), Tokens: d.Capacity, Source: source,
			Admission: state.Capacities[d.Name], Reserved: d.Reserved, History: append([]int64{}, d.History...),
		})
		if d.Full {
			c.Bottleneck = append(c.Bottleneck, control.DeviceBottleneck(d.Name))
		}
	}
	if state.Outcome.Standing {
		c.Overcommitted, c.Warning = true, state.Outcome.Note
	}
	return c
}

// ChangeRules implements server.Source.
func (s *source) ChangeRules(change func(*control.RuleSet) error) (control.QoS, error) {
	_, err := s.daemon.changeRules(func(set *ruleSet) error {
		shown := shownSet(*set)
		if err := change(&shown); err != nil {
			return err
		}
		meant, err := meantSet(&shown)
		meant.Overcommit = set.Overcommit
		*set = meant
		return err
	})
	if err != nil {
		return control.QoS{}, refused("the rules were refused, and none was changed", err)
	}
	return s.Rules(), nil
}

// refused says in the API's terms why rules were.
func refused(what string, err error) error {
	var capacity *haechi.AdmissionError
	r := &control.Refusal{What: what}
	if errors.As(err, &capacity) {
		r.State, r.Reasons = true, []control.Reason{{Text: err.Error()}}
		return r
	}
	r.Reasons = reasonsOf(err)
	if r.Reasons == nil {
		return err
	}
	return r
}

// reasonsOf takes joined errors apart; nil if one is not about rules.
func reasonsOf(err error) (all []control.Reason) {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, reasonsOf(one)...)
		}
	case *scheduler.RuleError:
		all = []control.Reason{{Place: "rule " + e.Rule + ": " + e.Field, Text: e.Reason}}
	case interface{ GetStatus() int }, *control.Refusal: // of the API itself
	default:
		all = []control.Reason{{Text: err.Error()}}
	}
	return all
}

// The words of the classes.
var classWords = map[scheduler.Class]string{
	scheduler.Urgent: "urgent", scheduler.High: "high", scheduler.Medium: "medium", scheduler.Low: "low",
}

// shownSet is a set in the API's terms.
func shownSet(set ruleSet) control.RuleSet {
	out := control.RuleSet{Rules: []control.Rule{}, Groups: []control.Group{}}
	for i := range set.Rules {
		r := &set.Rules[i]
		out.Rules = append(out.Rules, control.Rule{
			Name: r.Name, Initiators: slices.Clone(r.Initiators), Group: r.Group, Target: r.Target, LUN: r.LUN,
			Reservation: control.Rate(r.Reservation), Limit: control.Rate(r.Limit), Burst: control.Rate(r.Burst),
			Weight: r.Weight, Class: classWords[r.Class], GroupNumber: r.GroupNumber,
		})
	}
	for _, g := range set.Groups {
		out.Groups = append(out.Groups, control.Group(g))
	}
	return out
}

// meantSet is the set that the API's terms mean. Groups must have different
// names.
func meantSet(set *control.RuleSet) (out ruleSet, err error) {
	for i := range set.Rules {
		r := &set.Rules[i]
		class, _ := conf.ParseClass(r.Class) // medium, where the request has none
		out.Rules = append(out.Rules, scheduler.Rule{
			Name: r.Name, Initiators: r.Initiators, Group: r.Group, Target: r.Target, LUN: r.LUN,
			Reservation: scheduler.Rate(r.Reservation), Limit: scheduler.Rate(r.Limit), Burst: scheduler.Rate(r.Burst),
			Weight: r.Weight, Class: class, GroupNumber: r.GroupNumber,
		})
	}
	for i, g := range set.Groups {
		if slices.ContainsFunc(set.Groups[:i], func(o control.Group) bool { return o.Name == g.Name }) {
			err = errors.Join(err, fmt.Errorf("group %s: found twice, expected once", g.Name))
		}
		out.Groups = append(out.Groups, scheduler.Group(g))
	}
	return out, err
}

// Explain implements server.Source.
func (s *source) Explain(initiator string) control.Explanation {
	served, state, policy := s.daemon.QoS(initiator), s.daemon.rules(), s.daemon.QoSPolicy()
	x := explain(policy, &served)
	x.Capacity = s.capacity(&state, &served)
	if served.Lapsed {
		x.Lapsed = lapsed
	}
	if initiator != "" && len(x.Flows) == 0 {
		x.Flows = wouldBe(s.daemon.config.Load(), policy, initiator)
	}
	return x
}

// qosStatus is what the status has of the scheduler; nil without rules.
func (s *source) qosStatus() *control.Explanation {
	if s.daemon.QoSPolicy().Empty() {
		return nil
	}
	x := s.Explain("")
	return &x
}

// wouldBe are the flows that an initiator without a session would have.
func wouldBe(cfg *conf.Config, p *scheduler.Policy, initiator string) []control.Flow {
	out := []control.Flow{}
	for i := range cfg.Targets {
		for _, l := range visible(cfg, &cfg.Targets[i], initiator) {
			f := newSum(p, scheduler.Flow{Initiator: initiator, Target: cfg.Targets[i].Name, LUN: uint64(l.LUN)})
			out = append(out, f.shown(p))
		}
	}
	return out
}

// explain sums what the event threads say of each flow.
func explain(p *scheduler.Policy, served *target.QoSStatus) control.Explanation {
	x := control.Explanation{Rules: len(p.Rules()), Flows: []control.Flow{}, Promises: []control.Promised{}}
	sums, tokens := map[scheduler.Flow]*flowSum{}, map[string]map[int]int64{}
	for i := range served.Flows {
		one := &served.Flows[i]
		key := one.Flow
		key.Initiator, key.User = server.Sayable(key.Initiator), ""
		if sums[key] == nil {
			sums[key] = newSum(p, one.Flow)
		}
		sums[key].add(one, tokens)
	}
	for _, sum := range sums {
		f := sum.shown(p)
		f.Open = true
		for i := range f.Rules {
			for _, n := range tokens[sum.keys[i]] {
				f.Rules[i].Tokens += n
			}
		}
		x.Flows = append(x.Flows, f)
	}
	slices.SortFunc(x.Flows, func(a, b control.Flow) int {
		return cmp.Or(strings.Compare(a.Initiator, b.Initiator), strings.Compare(a.Target, b.Target), cmp.Compare(a.LUN, b.LUN))
	})
	x.Promises = promises(p, served)
	x.Connections = shownClasses(served.Classes)
	return x
}

// flowSum is a flow over all event threads.
type flowSum struct {
	scheduler.Explanation
	keys    []string // of the entities that the rules of Effects make
	threads map[int]bool
}

func newSum(p *scheduler.Policy, f scheduler.Flow) *flowSum {
	sum := &flowSum{threads: map[int]bool{}}
	sum.Flow = f
	for _, e := range p.Resolve(f) {
		if e.Key != "" && e.Rule != nil {
			sum.Effects = append(sum.Effects, scheduler.Effect{Rule: e.Rule.Name, Level: e.Level})
			sum.keys = append(sum.keys, e.Key)
		}
	}
	return sum
}

// add adds one thread's part. tokens has, by entity, what each thread has left:
// flows share it.
func (sum *flowSum) add(one *scheduler.Explanation, tokens map[string]map[int]int64) {
	sum.Merge(one)
	if one.Thread < 0 {
		return
	}
	sum.threads[one.Thread] = true
	for i := range sum.Effects {
		for _, e := range one.Effects {
			if e.Rule == sum.Effects[i].Rule {
				if tokens[sum.keys[i]] == nil {
					tokens[sum.keys[i]] = map[int]int64{}
				}
				tokens[sum.keys[i]][one.Thread] = e.Reserved
			}
		}
	}
}

// shown is the sum in the API's terms.
func (sum *flowSum) shown(p *scheduler.Policy) control.Flow {
	c := &sum.Counters
	f := control.Flow{
		Initiator: server.Sayable(sum.Flow.Initiator), Target: sum.Flow.Target, LUN: sum.Flow.LUN, Threads: len(sum.threads),
		Offered: c.Offered, Served: c.Served, OfferedTokens: c.OfferedTokens, ServedTokens: c.ServedTokens, ServedBytes: c.Bytes,
		Reserved: c.Reserved, Normal: c.Normal, Opportunistic: c.Opportunistic, Hits: c.Hits, Cancelled: c.Cancelled, Named: c.Named, Waiting: sum.Waiting,
		Rules: []control.Effect{}, Queue: histogram(&sum.Waits, c.Waited), Service: histogram(&sum.Services, c.Service),
	}
	for _, e := range sum.Effects {
		effect := control.Effect{Rule: e.Rule, Level: e.Level.String(), HeldIOPS: float64(e.HeldIOPS) / 1e9, HeldBandwidth: float64(e.HeldBytes) / 1e9}
		for i := range p.Rules() {
			if r := &p.Rules()[i]; r.Name == e.Rule {
				effect.Reservation, effect.Limit = control.Rate(r.Reservation), control.Rate(r.Limit)
			}
		}
		f.Rules = append(f.Rules, effect)
	}
	return f
}

// promises are the reservations of the entities that flows have, each once.
func promises(p *scheduler.Policy, served *target.QoSStatus) []control.Promised {
	out, seen := []control.Promised{}, map[string]bool{}
	for i := range served.Flows {
		for _, e := range p.Resolve(served.Flows[i].Flow) {
			if e.Key == "" || e.Rule == nil || seen[e.Key] || e.Rule.Reservation == (scheduler.Rate{}) {
				continue
			}
			seen[e.Key] = true
			out = append(out, promised(p, &e, served))
		}
	}
	slices.SortFunc(out, func(a, b control.Promised) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(out, func(a, b control.Promised) bool { return a.Rule == b.Rule && a.Name == b.Name })
}

func promised(p *scheduler.Policy, e *scheduler.Entity, served *target.QoSStatus) control.Promised {
	kept := served.Fulfilment[e.Key]
	out := control.Promised{
		Rule: e.Rule.Name, Level: e.Level.String(), Name: server.Sayable(strings.TrimPrefix(e.Key, e.Level.String()+" ")),
		Reservation: p.Cost().Tokens(e.Rule.Reservation), Met: kept.Met, Missed: kept.Missed, Unused: kept.Unused, Periods: []control.Period{},
	}
	for _, r := range served.Attainment[e.Key] {
		out.Periods = append(out.Periods, control.Period{Reservation: r.Reservation, Offered: r.Offered, Served: r.Served, Yielded: r.Yielded, Met: r.Met()})
	}
	return out
}

// The buckets that are told: every second power of two from 1 µs to 4.3 s.
const (
	firstBucket = 10
	lastBucket  = 32
)

// histogram is one in the API's terms; sum is of all durations, in ns.
func histogram(h *scheduler.Histogram, sum int64) control.Latency {
	l := control.Latency{Count: h.Count(), Sum: float64(sum) / 1e9, Max: float64(h.Max()) / 1e9, Buckets: []control.Bucket{}}
	for _, q := range []struct {
		to    *float64
		share float64
	}{{&l.P50, 0.5}, {&l.P90, 0.9}, {&l.P99, 0.99}, {&l.P999, 0.999}} {
		*q.to = h.Quantile(q.share) / 1e9
	}
	for i := firstBucket; i <= lastBucket; i += 2 {
		l.Buckets = append(l.Buckets, control.Bucket{Below: float64(int64(1)<<i) / 1e9, Count: h.Below(i)})
	}
	return l
}
