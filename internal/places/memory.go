package places

import (
	"maps"
	"net/netip"
	"time"
)

// Guest is somebody who had places: the name that it gave, the identity that it has
// proven, and the address that it came from.
type Guest struct {
	Name   string     `json:"name"`
	Proven string     `json:"proven,omitempty"` // empty: nothing
	Host   netip.Addr `json:"host"`             // see Host
}

// Memory reserves places, until a time, for guests that had them before.
type Memory struct {
	until time.Time
	had   map[Guest]int
	left  map[Guest]int // of them, those that are still reserved
	hosts map[netip.Addr]int
	all   int
}

// NewMemory reserves as many places for each guest as it had, up to most in all.
// Guests with a proven identity come first.
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

// Reserved returns how many places are reserved.
func (m *Memory) Reserved(now time.Time) int {
	m.forget(now)
	return m.all
}

// Left returns the places that are reserved, by guest.
func (m *Memory) Left(now time.Time) map[Guest]int {
	m.forget(now)
	return maps.Clone(m.left)
}

// Expects reports whether guests of the address have not come back yet.
func (m *Memory) Expects(host netip.Addr, now time.Time) bool {
	m.forget(now)
	return m.hosts[host] > 0
}

// Has reports whether a place is reserved for the guest.
func (m *Memory) Has(g Guest, now time.Time) bool {
	m.forget(now)
	return m.left[g] > 0
}

// Arrived records that the guest has taken a place that was reserved for it.
func (m *Memory) Arrived(g Guest) {
	if m.left[g] == 0 {
		return
	}
	decrease(m.left, g)
	decrease(m.hosts, g.Host)
	m.all--
}

// Departed records that a guest has given up the place that it came back to: it may
// log in anew.
func (m *Memory) Departed(g Guest, now time.Time) {
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
