package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lunar/control"
)

// clusterIn is the cluster with the volumes first that need somebody to look; nil: there is none.
func clusterIn(c *control.Cluster) *control.Cluster {
	if c == nil {
		return nil
	}
	out := *c
	out.Volumes = slices.Clone(c.Volumes)
	slices.SortStableFunc(out.Volumes, func(a, b control.ClusterVolume) int { return cmp.Compare(truth(b.InFlux), truth(a.InFlux)) })
	return &out
}

func truth(is bool) int {
	if is {
		return 1
	}
	return 0
}

// unowned is volumes of a cluster whose commands wait until it is decided who serves them.
func (s *span) unowned() []control.Answer {
	c := s.out.Cluster
	if c == nil {
		return nil
	}
	t := told{more: "more volumes have no owner that serves them"}
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if !v.InFlux || !t.room() {
			continue
		}
		t.add(control.Answer{Severity: control.AnswerFailed, Kind: "cluster", About: v.Name, Initiators: s.usersOf(v.Name),
			What: fmt.Sprintf("Volume %s has no owner that serves it: %s. Its commands wait.", v.Name, without(c, v)),
			Help: unownedHelp(c, v)})
	}
	return t.all()
}

// without is why a volume is in flux.
func without(c *control.Cluster, v *control.ClusterVolume) string {
	switch v.Here {
	case "suspecting", "fencing", "opening":
		return "this node is taking it over"
	case "draining":
		return "this node is giving it to another one"
	}
	switch v.State {
	case "none":
		return "no node ever had it"
	case "free":
		return "node " + v.Owner + " has closed it, and no other node has taken it"
	case "claiming":
		return "node " + v.Owner + " is taking it over"
	}
	return "its owner, node " + v.Owner + ", is " + conditionOf(c, v.Owner)
}

func conditionOf(c *control.Cluster, node string) string {
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Name == node {
			return n.Condition()
		}
	}
	return control.NodeAway
}

// unownedHelp is what would give a volume an owner.
func unownedHelp(c *control.Cluster, v *control.ClusterVolume) string {
	if !c.Etcd {
		return "Nobody can take it over while etcd has no majority."
	}
	var fit []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case !slices.Contains(v.Owners, n.Name):
		case n.Draining:
			fit = append(fit, "lunar cluster drain "+n.Name+" --off lets node "+n.Name+" take it.")
		case n.State == control.NodeAway:
			fit = append(fit, "Node "+n.Name+" may own it, and does not live.")
		}
	}
	return strings.Join(append(fit, "lunar cluster log has what was tried. A takeover takes some seconds at most."), " ")
}

// alone is what keeps this node from its part in the cluster.
func (s *span) alone() (out []control.Answer) {
	c := s.out.Cluster
	if c == nil {
		return nil
	}
	switch {
	case !c.Etcd:
		out = append(out, control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: c.Node,
			What: fmt.Sprintf("etcd has not answered node %s for %s: it does not run there, or has no majority.", c.Node, took(c.Answered)),
			Help: "Owners go on, without cached reads. Nobody takes a volume over, and changes of reservations and of the configuration are refused. Start lunar-etcd on more than half of the nodes."})
	case !c.Joined:
		out = append(out, control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: c.Node,
			What: fmt.Sprintf("Node %s has no place in cluster %s: %s.", c.Node, c.Name, strings.TrimSuffix(c.Why, ".")),
			Help: "It takes no volumes over, and reads pass its cache by."})
	}
	if c.Behind != "" {
		out = append(out, behindAnswer(c.Node, c.Behind))
	}
	for _, name := range c.Strangers() {
		out = append(out, control.Answer{Severity: control.AnswerFailed, Kind: "cluster", About: name,
			What: fmt.Sprintf("Disks of node %s have other serial numbers than on other nodes: hosts take them for other disks.", name),
			Help: "The cluster's state was made anew, and a new node was there first. On each node with the wrong numbers: " + control.StrangerHelp + "."})
	}
	return out
}

func behindAnswer(node, why string) control.Answer {
	return control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: node,
		What: fmt.Sprintf("Node %s does not have the newest configuration of the cluster: %s.", node, strings.TrimSuffix(why, ".")),
		Help: "It tries again every 30 seconds. lunar cluster config show has the text, and lunar cluster config rollback the one of before."}
}

// others is what is wrong with other nodes, and with the links to them, and what nodes cannot open.
func (s *span) others() []control.Answer {
	c := s.out.Cluster
	if c == nil {
		return nil
	}
	t := told{more: "more findings about nodes"}
	down := c.Unlinked()
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for _, u := range n.Unable {
			if t.room() {
				t.add(unableAnswer(n.Name, u))
			}
		}
		if n.Name == c.Node {
			continue
		}
		if a, ok := conditionAnswer(n); ok && t.room() {
			t.add(a)
		}
		if slices.Contains(down, n.Name) && t.room() {
			why := ""
			if n.Link.Why != "" {
				why = ": " + strings.TrimSuffix(n.Link.Why, ".")
			}
			t.add(control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: n.Name,
				What: fmt.Sprintf("There is no link to node %s at %s%s.", n.Name, n.Link.Address, why),
				Help: "Without it this node's paths to volumes of that one are standby, and promises are divided evenly. Look at the network between the nodes, and at port 7424."})
		}
	}
	return t.all()
}

func unableAnswer(node string, u control.ClusterUnable) control.Answer {
	return control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: node,
		What: fmt.Sprintf("Node %s cannot open volume %s: %s.", node, u.Volume, strings.TrimSuffix(u.Why, ".")),
		Help: "It is not given the volume, and does not take it over. Key files are read again every 5 seconds."}
}

// conditionAnswer is what is wrong with another node.
func conditionAnswer(n *control.ClusterNode) (a control.Answer, wrong bool) {
	a = control.Answer{Severity: control.AnswerWarning, Kind: "cluster", About: n.Name}
	switch n.State {
	case control.NodeAway:
		a.What, a.Help = fmt.Sprintf("Node %s does not live.", n.Name), "Its volumes go to other owners. Start its server, or take it out of owners."
		if n.Draining {
			a.Severity, a.Help = control.AnswerNote, "It was drained before: lunar cluster drain "+n.Name+" --off when it is back."
		}
	case control.NodeSilent:
		a.What, a.Help = fmt.Sprintf("Node %s is silent: etcd has not heard it for %s, and no link does.", n.Name, took(n.Silent)), "Other nodes take its volumes over. lunar cluster fence "+n.Name+" does at once."
	case control.NodeCut:
		a.What, a.Help = fmt.Sprintf("Node %s is cut off from etcd: links alone hear it.", n.Name), "It keeps its volumes, without cached reads. Look at lunar-etcd and the network there."
	case control.NodeBehind:
		why := n.Behind
		if why == "" {
			why = fmt.Sprintf("it has revision %d", n.Revision)
		}
		a = behindAnswer(n.Name, why)
	default:
		return a, false
	}
	return a, true
}
