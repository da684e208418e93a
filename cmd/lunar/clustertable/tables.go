package clustertable

import (
	"slices"
	"strings"

	"lunar/cmd/lunar/listing"
	"lunar/control"
)

// shownProcess is how many letters of an incarnation tell processes apart.
const shownProcess = 8

// Nodes are the nodes, and how they are heard by etcd and over links.
var Nodes = listing.Table[control.ClusterNode]{
	{Name: "node", Of: func(n *control.ClusterNode) any { return n.Name }},
	{Name: "version", Of: func(n *control.ClusterNode) any { return n.Version }},
	{Name: "state", Of: func(n *control.ClusterNode) any { return n.State }},
	{Name: "revision", Of: func(n *control.ClusterNode) any { return n.Revision }},
	{Name: "volumes", Of: func(n *control.ClusterNode) any { return len(n.Volumes) }},
	{Name: "etcd", Of: func(n *control.ClusterNode) any { return etcdOf(n) }},
	{Name: "lease", Of: func(n *control.ClusterNode) any {
		if n.Lease == nil {
			return nil
		}
		return listing.Seconds(n.Lease.Left)
	}},
	{Name: "renewed", Of: func(n *control.ClusterNode) any {
		if n.Lease == nil {
			return nil
		}
		return listing.Seconds(n.Lease.Age)
	}},
	{Name: "link", Of: func(n *control.ClusterNode) any { return linkOf(n.Link) }},
	{Name: "heard", Of: func(n *control.ClusterNode) any {
		if n.Link == nil || n.Link.Heard == nil {
			return nil
		}
		return listing.Seconds(*n.Link.Heard)
	}},
	{Name: "hears", Of: func(n *control.ClusterNode) any { return strings.Join(n.Hears, " ") }},
	{Name: "process", Of: func(n *control.ClusterNode) any { return n.Incarnation[:min(len(n.Incarnation), shownProcess)] }},
	{Name: "since", Of: func(n *control.ClusterNode) any {
		if n.Since.IsZero() {
			return nil
		}
		return n.Since.Local()
	}},
	{Name: "portals", Of: func(n *control.ClusterNode) any { return strings.Join(n.Portals, " ") }},
}

// etcdOf is whether etcd hears a node.
func etcdOf(n *control.ClusterNode) any {
	switch {
	case n.Heard:
		return "heard"
	case n.Silent > 0:
		return "silent " + listing.Seconds(n.Silent).String()
	}
	return nil
}

// linkOf is how a node is reached.
func linkOf(l *control.ClusterLink) any {
	switch {
	case l == nil:
		return nil
	case !l.Up:
		return "DOWN"
	}
	return "up " + listing.Seconds(l.RoundTrip).String()
}

// Volumes are the volumes with owners.
var Volumes = listing.Table[control.ClusterVolume]{
	{Name: "volume", Of: func(v *control.ClusterVolume) any { return v.Name }},
	{Name: "owner", Of: func(v *control.ClusterVolume) any { return v.Owner }},
	{Name: "state", Of: func(v *control.ClusterVolume) any { return v.State }},
	{Name: "epoch", Of: func(v *control.ClusterVolume) any { return v.Epoch }},
	{Name: "since", Of: func(v *control.ClusterVolume) any {
		if v.Since.IsZero() {
			return nil
		}
		return v.Since.Local()
	}},
	{Name: "in-flux", Of: func(v *control.ClusterVolume) any { return v.InFlux }},
	{Name: "here", Of: func(v *control.ClusterVolume) any { return v.Here }},
	{Name: "owners", Of: func(v *control.ClusterVolume) any { return candidates(v) }},
	{Name: "access", Of: func(v *control.ClusterVolume) any {
		var parts []string
		for _, a := range v.Access {
			parts = append(parts, a.Node+" "+a.State)
		}
		return parts
	}},
}

// candidates are the nodes that may own a volume, with what keeps them from it.
func candidates(v *control.ClusterVolume) string {
	var all []string
	for _, node := range v.Owners {
		if slices.Contains(v.Unable, node) {
			node += " (UNABLE)"
		}
		all = append(all, node)
	}
	return strings.Join(all, " ")
}

// Parts are what nodes have of all that is promised.
var Parts = listing.Table[control.ClusterNodeTotals]{
	{Name: "node", Of: func(n *control.ClusterNodeTotals) any { return n.Node }},
	{Name: "reserved-left", Of: func(n *control.ClusterNodeTotals) any { return n.Reserved }},
	{Name: "received", Of: func(n *control.ClusterNodeTotals) any { return n.Served }},
	{Name: "can-do", Of: func(n *control.ClusterNodeTotals) any {
		if n.Capacity == 0 {
			return nil
		}
		return n.Capacity
	}},
}
