package scheduler

import "lunar/scheduler/pshift"

// Totals are sums over all entities, for whoever looks at a coordinator whose threads are nodes.
type Totals struct {
	Entities int64 // that have a reservation or a limit
	Reserved int64 // tokens/s; what lies inside another reservation is part of that
	Limit    int64 // tokens/s, of all limits, also of those inside others
	Served   int64 // tokens, to initiators in the last period
	Missed   int64 // entities whose reservation was not kept in the last period
	Threads  []ThreadTotals
}

// ThreadTotals are those of one thread.
type ThreadTotals struct {
	Reserved int64 // R-tokens, until the period's end
	Served   int64 // tokens, to initiators in the last period
	Capacity int64 // tokens/s, of all devices that it uses: one that several use counts with each
}

// Totals returns them.
func (c *Coordinator) Totals() Totals {
	t := Totals{Threads: make([]ThreadTotals, c.config.Threads)}
	for _, m := range c.members {
		limited := m.limit != pshift.Unlimited
		if m.rate > 0 || limited {
			t.Entities++
		}
		if limited {
			t.Limit += m.limit
		}
		if m.missed() {
			t.Missed++
		}
		if m.addTo(t.Threads) {
			t.Reserved += m.rate
		}
	}
	for _, s := range c.servers {
		if s.present {
			t.Threads[s.thread].Capacity += s.backing.capacity()
		}
	}
	for i := range t.Threads {
		t.Served += t.Threads[i].Served
	}
	return t
}

// addTo adds what an entity has on each thread, and reports whether no reservation lies around
// the entity's.
func (m *member) addTo(threads []ThreadTotals) (root bool) {
	for _, p := range m.at {
		on := &threads[p.server.thread]
		if p.root {
			root, on.Reserved = true, on.Reserved+p.reserved
		}
		if m.level == InitiatorLevel { // every command counts in one of these
			on.Served += p.period
		}
	}
	return root
}

// missed reports whether the reservation was not kept in the last period.
func (m *member) missed() bool {
	a := &m.attainment
	if a.count == 0 {
		return false
	}
	last := a.periods[(a.count-1)%historyPeriods]
	return last.Reservation > 0 && !last.Met()
}
