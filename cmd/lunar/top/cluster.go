package top

import (
	"strings"

	"lunar/cmd/lunar/clustertable"
	"lunar/control"
)

// nodeKey is before the name of a node that a row is about.
const nodeKey = "node "

// shown are the pages that there are of an overview: that of the cluster, the last one, only where
// the server is a node of one.
func shown(o *control.Overview) []page {
	if o == nil || o.Cluster == nil {
		return pages[:len(pages)-1]
	}
	return pages
}

// clusterPart is the page of the cluster.
func clusterPart(o *control.Overview, by order) (p part) {
	c := o.Cluster
	if c == nil {
		return part{lines: []line{{text: "This server is a node of no cluster any more."}}}
	}
	for _, l := range clustertable.Lines(c) {
		t := plain
		if l.Bad {
			t = alarm
		}
		p.lines = append(p.lines, line{l.Text, t, 2})
	}
	p.lines = append(append(p.lines, more(o.LeftOut.Owned, "volume")...), line{})
	p.sheets = []sheet{
		sheetOf(clustertable.Nodes, c.Nodes, by, func(n *control.ClusterNode) string { return nodeKey + n.Name }, nodeTone),
		sheetOf(clustertable.Volumes, c.Volumes, order{}, nil, ownedTone),
	}
	if c.Promise != nil {
		p.sheets = append(p.sheets, sheetOf(clustertable.Parts, c.Promise.Nodes, order{}, nil, nil))
	}
	return p
}

func nodeTone(n *control.ClusterNode) tone {
	switch {
	case n.State == control.NodeAway || n.State == control.NodeSilent:
		return alarm
	case n.State != control.NodeOK || n.Link != nil && !n.Link.Up:
		return caution
	}
	return plain
}

func ownedTone(v *control.ClusterVolume) tone {
	if v.InFlux {
		return alarm
	}
	return plain
}

// nodePart is the page of a node: what links it has, and the volumes that it owns.
func nodePart(o *control.Overview, name string, by order) part {
	if o.Cluster == nil {
		return gone("node " + name)
	}
	for i := range o.Cluster.Nodes {
		n := &o.Cluster.Nodes[i]
		if n.Name != name {
			continue
		}
		p := part{lines: []line{{"node " + name, strong, 0}, {text: "state " + n.Condition(), tone: nodeTone(n)}}}
		if n.Incarnation != "" {
			p.lines = append(p.lines, line{text: "process " + n.Incarnation})
		}
		if n.Link != nil {
			p.lines = append(p.lines, line{strings.TrimSpace("link to " + n.Link.Address + " " + n.Link.Why), plain, 2})
		}
		if n.Behind != "" {
			p.lines = append(p.lines, line{"configuration: " + n.Behind, alarm, 2})
		}
		for _, u := range n.Unable {
			p.lines = append(p.lines, line{"cannot open volume " + u.Volume + ": " + u.Why, caution, 2})
		}
		p.lines = append(append(p.lines, answersAbout(o, name)...), line{})
		var owned []control.ClusterVolume
		for _, v := range o.Cluster.Volumes {
			if v.OwnedBy(name) {
				owned = append(owned, v)
			}
		}
		p.sheets = []sheet{sheetOf(clustertable.Volumes, owned, by, func(v *control.ClusterVolume) string { return volumeKey + v.Name }, ownedTone)}
		return p
	}
	return gone("node " + name)
}

// answersAbout are the answers about something.
func answersAbout(o *control.Overview, name string) []line {
	var hit []control.Answer
	for _, a := range o.Answers {
		if a.About == name {
			hit = append(hit, a)
		}
	}
	return answerLines(hit, true)
}
