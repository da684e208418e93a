package tier

import (
	"lunar/cache"
	"lunar/internal/evloop"
)

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
			tuning: &c.tuning, loop: loop, number: i, node: node, router: cache.NewRouter(c.blocks.Geometry, node, &c.tuning.threshold),
		})
	}
	for _, s := range c.stations {
		s.peers = c.stations.peersOf(s, c.config.Layout.Nodes)
	}
}

// SetForwardThreshold changes Config.ForwardThreshold.
func (c *Cache) SetForwardThreshold(bytes int64) { c.tuning.set(bytes) }

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
		for _, s := range c.stations.on(i) {
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
