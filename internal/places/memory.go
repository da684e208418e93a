package places

import (
	"maps"
	"net/netip"
	"time"
)

// Guest is somebody who had places: by the name that he gave, what he has proven
// to be, and the address that he came from.
type Guest struct {
	Name   string     `json:"name"`
	Proven string     `json:"proven,omitempty"` // empty: nothing
	Host   netip.Addr `json:"host"`             // see Host
}

// Memory keeps places for guests of before until a time.
type Memory struct {
	until time.Time
	had   map[Guest]int
	left  map[Guest]int // of them, those that are kept
	hosts map[netip.Addr]int
	all   int
}

// NewMemory keeps as many places for each guest as it had, up to most in all. Those
// come first of whom most is known.
func NewMemory(guests map[Guest]int, most int, until time.Time) *Memory {
	m := &Memory{until: until, had: make(map[Guest]int), left: make(map[Guest]int), hosts: make(map[netip.Addr]int)}
	for _, proven := range []bool{true, false} {
		for g, n := range guests {
			if n = min(n, most-m.all); n > 0 && (g.Proven != "") == proven {
				m.had[g] = n
				m.keep(g, n)
			}
		}
	}
	return m
}

func (m *Memory) keep(g Guest, n int) {
	m.left[g] += n
	m.hosts[g.Host] += n
	m.all += n
}

// Kept is how many places are kept.
func (m *Memory) Kept(now time.Time) int {
	m.forget(now)
	return m.all
}

// Left are the places that are kept.
func (m *Memory) Left(now time.Time) map[Guest]int {
	m.forget(now)
	return maps.Clone(m.left)
}

// Expects reports whether guests of the address have not come back yet.
func (m *Memory) Expects(host netip.Addr, now time.Time) bool {
	m.forget(now)
	return m.hosts[host] > 0
}

// Has reports whether a place is kept for the guest.
func (m *Memory) Has(g Guest, now time.Time) bool {
	m.forget(now)
	return m.left[g] > 0
}

// Back says that the guest has a place that was kept for it.
func (m *Memory) Back(g Guest) {
	if m.left[g] == 0 {
		return
	}
	decrease(m.left, g)
	decrease(m.hosts, g.Host)
	m.all--
}

// Away says that a guest which was back has left its place again: it may log in
// anew.
func (m *Memory) Away(g Guest, now time.Time) {
	m.forget(now)
	if m.left[g] < m.had[g] {
		m.keep(g, 1)
	}
}

func (m *Memory) forget(now time.Time) {
	if len(m.had) > 0 && !now.Before(m.until) {
		clear(m.had)
		clear(m.left)
		clear(m.hosts)
		m.all = 0
	}
}
