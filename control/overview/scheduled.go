package overview

import (
	"cmp"
	"slices"
	"strings"

	"lunar/control"
)

func nexusOf(f *control.Flow) nexus { return nexus{f.Initiator, f.Target, f.LUN} }

// scheduled takes in what the scheduler tells of each flow.
func (s *span) scheduled() {
	if s.now.Status.QoS == nil {
		return
	}
	before := map[nexus]*control.Flow{}
	if old := s.before.Status.QoS; old != nil {
		for i := range old.Flows {
			before[nexusOf(&old.Flows[i])] = &old.Flows[i]
		}
	}
	for i := range s.now.Status.QoS.Flows {
		f := &s.now.Status.QoS.Flows[i]
		who := s.known[f.Initiator]
		if !f.Open || who == nil {
			continue
		}
		old := before[nexusOf(f)]
		if old == nil {
			old = &control.Flow{}
		}
		seen := &flow{Flow: f, asked: s.perSecond(uint64(f.OfferedTokens), uint64(old.OfferedTokens)), received: s.perSecond(uint64(f.ServedTokens), uint64(old.ServedTokens))}
		seen.held, seen.by = s.held(f, old)
		s.flows[nexusOf(f)] = seen
		for _, e := range f.Rules {
			s.ruled[ruling{e.Rule, e.Level}] = append(s.ruled[ruling{e.Rule, e.Level}], seen)
		}
		s.tell(who, seen)
	}
}

// tell adds a flow to what is seen of its initiator, and of its use of the volume.
func (s *span) tell(who *control.SeenInitiator, f *flow) {
	who.Asked += f.asked
	who.Received += f.received
	who.Waiting += f.Waiting
	if f.held > who.Throttled {
		who.Throttled, who.HeldBy = f.held, f.by
	}
	for _, e := range f.Rules {
		who.Rules = noted(who.Rules, e.Rule)
		who.Limit = control.Rate{IOPS: lower(who.Limit.IOPS, e.Limit.IOPS), Bytes: lower(who.Limit.Bytes, e.Limit.Bytes)}
	}
	if volume := s.volumes[nexusOf(f.Flow)]; volume != "" {
		u := s.use(f.Initiator, volume)
		u.Throttled = max(u.Throttled, f.held)
		u.Waiting += f.Waiting
		for _, e := range f.Rules {
			if !slices.Contains(u.Rules, e.Rule) {
				u.Rules = append(u.Rules, e.Rule)
			}
		}
	}
}

// lower is the lower of two limits, of which 0 is none.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// held is the share of the time for which the limits of one rule held a flow back, of the
// rule that did so most. Each event thread has a queue of its own, which waits by itself.
func (s *span) held(now, before *control.Flow) (most float64, by string) {
	old := map[string]float64{}
	for _, e := range before.Rules {
		old[e.Rule] = e.HeldIOPS + e.HeldBandwidth
	}
	for _, e := range now.Rules {
		held, was := e.HeldIOPS+e.HeldBandwidth, old[e.Rule]
		if held < was { // the rules were changed
			was = 0
		}
		if part := share(held-was, s.seconds*float64(max(now.Threads, 1))); part > most {
			most, by = part, e.Rule
		}
	}
	return most, by
}

// latelyMissed is for how many of the last seconds a promise counts as missed.
const latelyMissed = 10

// promises are the reservations, the missed ones first.
func (s *span) promises() []control.SeenPromise {
	out := []control.SeenPromise{}
	if s.now.Status.QoS == nil {
		return out
	}
	nexuses := map[string]int64{} // what initiators are promised for single logical units
	for i := range s.now.Status.QoS.Promises {
		p := &s.now.Status.QoS.Promises[i]
		seen := s.seenPromise(p)
		for _, name := range seen.Initiators {
			who := s.known[name]
			if seen.State == "missed" || who.Promise == "none" {
				who.Promise = map[bool]string{true: "missed", false: "kept"}[seen.State == "missed"]
			}
			switch p.Level {
			case "initiator":
				who.Reserved = max(who.Reserved, p.Reservation)
			case "nexus":
				nexuses[name] += p.Reservation
			}
		}
		out = append(out, seen)
	}
	for name, sum := range nexuses {
		s.known[name].Reserved = max(s.known[name].Reserved, sum)
	}
	rank := map[string]int{"missed": 0, "kept": 1, "unused": 2}
	slices.SortStableFunc(out, func(a, b control.SeenPromise) int {
		return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), cmp.Compare(b.MissedOf60, a.MissedOf60))
	})
	return out
}

func (s *span) seenPromise(p *control.Promised) control.SeenPromise {
	seen := control.SeenPromise{Rule: p.Rule, Level: p.Level, Name: p.Name, Initiators: s.promisedTo(p), Reservation: p.Reservation, Unused: p.Unused, State: "kept", History: []int64{}}
	for i, period := range p.Periods {
		seen.History = append(seen.History, period.Served)
		if !period.Met {
			seen.MissedOf60++
			s.lately[ruling{p.Rule, p.Name}] = len(p.Periods)-i <= latelyMissed
		}
	}
	if n := len(p.Periods); n > 0 {
		last := &p.Periods[n-1]
		seen.Asked, seen.Served = last.Offered, last.Served
		switch {
		case !last.Met:
			seen.State = "missed"
		case last.Offered < last.Reservation:
			seen.State = "unused"
		}
	}
	return seen
}

// promisedTo are the initiators with sessions that a reservation is about.
func (s *span) promisedTo(p *control.Promised) []string {
	names := []string{}
	for _, f := range s.ruled[ruling{p.Rule, p.Level}] {
		if p.Level == "group" || about(p.Name, f.Initiator) {
			names = noted(names, f.Initiator)
		}
	}
	return names
}

// about reports whether the name of a promise is an initiator's: alone, with a user, or
// with a target and LUN.
func about(promised, initiator string) bool {
	rest, ok := strings.CutPrefix(promised, initiator)
	return ok && (rest == "" || rest[0] == ' ')
}
