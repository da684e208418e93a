package tier

import (
	"slices"
	"sync/atomic"

	"lunar/backstore"
	"lunar/cache"
	"lunar/internal/evloop"
)

// station is an event thread that serves requests which other nodes forward, and
// forwards others.
type station struct {
	tuning *tuning
	loop   *evloop.Loop
	number int           // among the stations
	node   int           // of the Cache's nodes; -1: the thread is on another one
	router *cache.Router // of the thread
	peers  []*station    // by node: that the thread forwards to; nil: nobody is there
}

// stations are the event threads of the server, by number.
type stations []*station

// peersOf chooses whom a thread forwards to. The threads of a node choose
// different ones of another node, as far as there are.
func (all stations) peersOf(s *station, nodes int) []*station {
	peers := make([]*station, nodes)
	rank := slices.Index(all.on(s.node), s)
	for node := range peers {
		if there := all.on(node); len(there) > 0 && node != s.node {
			peers[node] = there[rank%len(there)]
		}
	}
	return peers
}

// on returns the stations of a node.
func (all stations) on(node int) (there []*station) {
	for _, s := range all {
		if s.node == node {
			there = append(there, s)
		}
	}
	return there
}

// of returns the event thread's; nil: it is not one of the server's.
func (all stations) of(l *evloop.Loop) *station {
	for _, s := range all {
		if s.loop == l {
			return s
		}
	}
	return nil
}

// agents are a volume's lanes for what is forwarded to a thread, one for each
// station, opened by the first such request. They are closed when the last of the
// lanes is closed that could forward anything.
type agents struct {
	stations stations
	open     func(*station) (backstore.Lane, error)
	lanes    []backstore.Lane // by station; each belongs to its thread
	homes    atomic.Int32     // lanes that may forward
}

// lane returns the one on the station's thread, which is the caller.
func (a *agents) lane(s *station) (backstore.Lane, error) {
	if a.lanes[s.number] != nil {
		return a.lanes[s.number], nil
	}
	l, err := a.open(s)
	if err != nil {
		return nil, err
	}
	a.lanes[s.number] = l
	return l, nil
}

// join returns the station of an event thread whose lane forwards from now on; nil: it
// is not one of the server's.
func (a *agents) join(l *evloop.Loop) *station {
	s := a.stations.of(l)
	if s != nil {
		a.homes.Add(1)
	}
	return s
}

// part ends what join has begun. The lane has nothing under way.
func (a *agents) part() {
	if a.homes.Add(-1) > 0 {
		return
	}
	for _, s := range a.stations {
		s.loop.Post(evloop.Func(func() { a.dismiss(s) }))
	}
}

// dismiss closes the lane on the station's thread, unless lanes were opened
// meanwhile that forward to it. Without such lanes nothing is on the way here.
func (a *agents) dismiss(s *station) {
	if l := a.lanes[s.number]; l != nil && a.homes.Load() == 0 {
		a.lanes[s.number] = nil
		l.Close()
	}
}
