package tier

import (
	"slices"
	"sync/atomic"

	"lunar/cache"
	"lunar/internal/evloop"
)

// station is an event thread that serves requests which other nodes forward, and
// forwards others.
type station struct {
	cache  *Cache
	loop   *evloop.Loop
	number int           // among the stations
	node   int           // of the Cache's nodes; -1: the thread is on another one
	router *cache.Router // of the thread
	peers  []*station    // by node: that the thread forwards to; nil: nobody is there
}

// Serve tells the Cache the event threads of the server, which must run until
// the last volume's lanes are closed. From then on large requests are forwarded
// to a thread of the node that has their data. Call it once, before volumes are
// wrapped. A cache on one node does not need it: it does nothing then.
func (c *Cache) Serve(loops ...*evloop.Loop) {
	if c.config.Layout.Nodes == 1 {
		return
	}
	for i, loop := range loops {
		node := c.config.nodeOf(loop.Node())
		c.stations = append(c.stations, &station{
			cache: c, loop: loop, number: i, node: node, router: cache.NewRouter(c.blocks.Geometry, node, &c.tuning.threshold),
		})
	}
	for _, s := range c.stations {
		s.peers = c.peersOf(s)
	}
}

// peersOf chooses whom a thread forwards to. The threads of a node choose
// different ones of another node, as far as there are.
func (c *Cache) peersOf(s *station) []*station {
	peers := make([]*station, c.config.Layout.Nodes)
	rank := slices.Index(c.on(s.node), s)
	for node := range peers {
		if there := c.on(node); len(there) > 0 && node != s.node {
			peers[node] = there[rank%len(there)]
		}
	}
	return peers
}

// on returns the stations of a node.
func (c *Cache) on(node int) (there []*station) {
	for _, s := range c.stations {
		if s.node == node {
			there = append(there, s)
		}
	}
	return there
}

// stationOf returns the event thread's; nil: it is not one of the server's.
func (c *Cache) stationOf(l *evloop.Loop) *station {
	for _, s := range c.stations {
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
	lanes []*lane      // by station; each belongs to its thread
	homes atomic.Int32 // lanes that may forward
}

// lane returns the one on the station's thread, which is the caller.
func (a *agents) lane(v *volume, s *station) (*lane, error) {
	if a.lanes[s.number] != nil {
		return a.lanes[s.number], nil
	}
	l, err := v.lane(s.loop)
	if err != nil {
		return nil, err
	}
	l.forwarding.station, l.forwarding.agent = s, true
	a.lanes[s.number] = l
	return l, nil
}

// join makes a lane one that forwards, if its thread is one of the server's.
func (a *agents) join(l *lane) {
	if s := l.cache.stationOf(l.loop); s != nil {
		l.forwarding.station = s
		a.homes.Add(1)
	}
}

// part ends what join has begun. The lane has nothing under way.
func (a *agents) part(l *lane) {
	if l.forwarding.station == nil || l.forwarding.agent || a.homes.Add(-1) > 0 {
		return
	}
	for _, s := range l.cache.stations {
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

// NodeTraffic is where the requests went that came in on the event threads of a
// node.
type NodeTraffic struct {
	Node int // as the topology numbers it
	// Counted on the node's event threads: Local is served there, by the node that
	// has most of the bytes, also for others that have forwarded it; Remote is
	// served there though another has most of them; Forwarded was handed to that
	// one.
	cache.RouterStats
}

// Forwarding returns the traffic of each of the Cache's nodes, as far as event
// threads are known (see Serve), and the size in bytes from which requests are
// forwarded now.
func (c *Cache) Forwarding() (nodes []NodeTraffic, threshold int64) {
	nodes = make([]NodeTraffic, c.config.Layout.Nodes)
	for i := range nodes {
		nodes[i].Node = i
		if c.config.NodeIDs != nil {
			nodes[i].Node = c.config.NodeIDs[i]
		}
		for _, s := range c.on(i) {
			nodes[i].add(s.router.Stats())
		}
	}
	return nodes, c.tuning.threshold.Load()
}

func (n *NodeTraffic) add(s cache.RouterStats) {
	n.Interpreted += s.Interpreted
	n.Local += s.Local
	n.LocalBytes += s.LocalBytes
	n.Remote += s.Remote
	n.RemoteBytes += s.RemoteBytes
	n.Forwarded += s.Forwarded
	n.ForwardedBytes += s.ForwardedBytes
}
