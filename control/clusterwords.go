package control

import (
	"fmt"
	"strings"
)

// words are what is wrong with a cluster for this node's hosts, and what is worth knowing of it.
func (c *Cluster) words() (wrong, known []string) {
	switch {
	case !c.Etcd:
		wrong = append(wrong, "etcd of cluster "+c.Name+" does not answer, or has no majority")
	case !c.Joined:
		wrong = append(wrong, "node "+c.Node+" has no place in cluster "+c.Name)
	}
	if c.Full {
		wrong = append(wrong, "the state of cluster "+c.Name+" is full")
	}
	if c.Behind != "" {
		wrong = append(wrong, "node "+c.Node+" does not have the newest configuration of cluster "+c.Name)
	}
	for _, name := range c.Strangers() {
		wrong = append(wrong, "disks of node "+name+" have other serial numbers than on other nodes")
	}
	owned := 0
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if v.InFlux {
			wrong = append(wrong, "volume "+v.Name+" has no owner that serves it")
		}
		if v.OwnedBy(c.Node) {
			owned++
		}
	}
	known = append(known, fmt.Sprintf("node %s owns %d of %d volumes of cluster %s", c.Node, owned, len(c.Volumes), c.Name))
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Name != c.Node && n.State != NodeOK {
			known = append(known, "node "+n.Name+" is "+n.Condition())
		}
		if len(c.Nodes[i].Unable) > 0 {
			known = append(known, "node "+c.Nodes[i].Name+" cannot open "+few(len(c.Nodes[i].Unable), "volume")[0])
		}
	}
	if down := c.Unlinked(); len(down) > 0 {
		known = append(known, "no link to "+strings.Join(down, ", "))
	}
	return wrong, known
}

// FullHelp is what makes room in a state that does not make it by itself.
const FullHelp = "lunar-etcd makes some within seconds; if it logs that it cannot, raise \"quota\" in etcd/member.json of each node and restart lunar-etcd there"

// StrangerHelp is what mends a node whose disks have other serial numbers.
const StrangerHelp = "stop its server, copy cluster-identity.json from the state directory of a node whose numbers hosts know, and start it again"

// Strangers are the nodes whose disks have other serial numbers than the cluster's.
func (c *Cluster) Strangers() (names []string) {
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Stranger {
			names = append(names, n.Name)
		}
	}
	return names
}

// Condition is a node's state in words.
func (n *ClusterNode) Condition() string {
	if n.State == NodeAway && n.Draining {
		return "drained and away"
	}
	return n.State
}

// Unlinked are the living nodes to which this one has no link.
func (c *Cluster) Unlinked() (names []string) {
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Link != nil && !n.Link.Up && n.Incarnation != "" {
			names = append(names, n.Name)
		}
	}
	return names
}
