package overview

import (
	"cmp"
	"slices"

	"lunar/control"
)

// opened tells a session from another that has got its number later.
type opened struct {
	tsih int
	at   int64 // ns
}

func openedOf(n *control.Session) opened { return opened{n.TSIH, n.Connected.UnixNano()} }

// sessions takes in who is there, and what each has done with its logical units.
func (s *span) sessions() {
	before := map[opened]*control.Session{}
	for i := range s.before.Status.Sessions {
		before[openedOf(&s.before.Status.Sessions[i])] = &s.before.Status.Sessions[i]
	}
	for i := range s.now.Status.Sessions {
		n := &s.now.Status.Sessions[i]
		if n.Target == "" {
			continue // discovery
		}
		who := s.initiator(n.Initiator)
		who.Sessions++
		who.InFlight += n.InFlight
		who.Window += n.Window
		who.Addresses, who.Threads = noted(who.Addresses, n.Address), noted(who.Threads, n.Thread)
		was := map[int]*control.SessionLUN{}
		if old := before[openedOf(n)]; old != nil {
			for j := range old.LUNs {
				was[old.LUNs[j].LUN] = &old.LUNs[j]
			}
		}
		for j := range n.LUNs {
			l, io := &n.LUNs[j], control.IO{}
			if old := was[l.LUN]; old != nil && old.Volume == l.Volume {
				io = old.IO
			}
			r := s.rates(&l.IO, &io)
			who.Volumes = noted(who.Volumes, l.Volume)
			add(&who.Rates, r)
			add(&s.use(n.Initiator, l.Volume).Rates, r)
			s.volumes[nexus{n.Initiator, n.Target, uint64(l.LUN)}] = l.Volume
		}
	}
}

// traffic adds to that how long commands take.
func (s *span) traffic() {
	for i := range s.now.Latencies.Uses {
		l := &s.now.Latencies.Uses[i]
		if u := s.uses[use{l.Initiator, l.Volume}]; u != nil {
			u.Recent = slowest(u.Recent, l.Recent)
		}
	}
	for i := range s.now.Latencies.Initiators {
		l := &s.now.Latencies.Initiators[i]
		if who := s.known[l.Initiator]; who != nil {
			who.Recent = slowest(who.Recent, l.Recent)
		}
	}
	for _, who := range s.known {
		who.UnderWay = underWay(&who.Rates, who.Recent)
	}
}

// slowest is of each operation the one with the longer times: users of one name are told
// apart by the latencies, not here.
func slowest(a, b []control.OperationQuantile) []control.OperationQuantile {
	out := slices.Clone(a)
	for _, q := range b {
		at := slices.IndexFunc(out, func(o control.OperationQuantile) bool { return o.Operation == q.Operation })
		switch {
		case at < 0:
			out = append(out, q)
		case out[at].P99 < q.P99:
			out[at] = q
		}
	}
	return filled(out)
}

// underWay is how many commands are in the server on average (Little's law).
func underWay(r *control.Rates, recent []control.OperationQuantile) (n float64) {
	for _, q := range recent {
		switch q.Operation {
		case "read":
			n += r.Reads * q.Mean
		case "write":
			n += r.Writes * q.Mean
		default:
			n += (r.IOPS - r.Reads - r.Writes) * q.Mean
		}
	}
	return n
}

// meanTime is of all operations, in seconds; 0: there were none.
func meanTime(recent []control.OperationQuantile) float64 {
	sum, n := 0., uint64(0)
	for _, q := range recent {
		sum, n = sum+q.Mean*float64(q.Count), n+q.Count
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// listed are the uses in which something is under way, and all initiators, the busiest first.
func (s *span) listed() ([]control.SeenUse, []control.SeenInitiator) {
	uses, all := []control.SeenUse{}, []control.SeenInitiator{}
	for _, u := range s.uses {
		if u.Rates != (control.Rates{}) || u.Waiting > 0 {
			uses = append(uses, *u)
		}
	}
	for _, who := range s.known {
		all = append(all, *who)
	}
	slices.SortFunc(uses, func(a, b control.SeenUse) int {
		return cmp.Or(busiest(&a.Rates, &b.Rates), cmp.Compare(a.Initiator, b.Initiator), cmp.Compare(a.Volume, b.Volume))
	})
	slices.SortFunc(all, func(a, b control.SeenInitiator) int {
		return cmp.Or(busiest(&a.Rates, &b.Rates), cmp.Compare(a.Initiator, b.Initiator))
	})
	return uses, all
}
