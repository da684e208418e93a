package clustertable

import (
	"fmt"
	"strings"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

// Line is one that stands above the tables.
type Line struct {
	Text string
	Bad  bool // it says what is wrong
}

// Lines are what is so of a cluster as a whole.
func Lines(c *control.Cluster) (out []Line) {
	out = append(out, Line{fmt.Sprintf("Cluster %s, node %s: joined", c.Name, c.Node), false})
	if !c.Joined {
		out[0] = Line{fmt.Sprintf("Cluster %s, node %s: NOT JOINED: %s", c.Name, c.Node, c.Why), true}
	}
	if c.Etcd {
		out = append(out, Line{fmt.Sprintf("etcd answers; it has renewed the lease %v ago, and cached data are served for %v more", listing.Seconds(c.Answered), listing.Seconds(c.Lease)), false})
	} else {
		out = append(out, Line{fmt.Sprintf("etcd has NOT ANSWERED for %v: nobody takes volumes over", listing.Seconds(c.Answered)), true})
	}
	if c.Full {
		out = append(out, Line{"etcd is FULL: nobody takes volumes over, and nothing is changed, until there is room. " + control.FullHelp, true})
	}
	out = append(out, configuration(c)...)
	for _, n := range c.Nodes {
		if n.Stranger {
			out = append(out, Line{fmt.Sprintf("Disks of node %s have OTHER SERIAL NUMBERS than on other nodes: %s", n.Name, control.StrangerHelp), true})
		}
		for _, u := range n.Unable {
			out = append(out, Line{fmt.Sprintf("Node %s cannot open volume %s, and is not to own it: %s", n.Name, u.Volume, u.Why), true})
		}
	}
	return append(out, promise(c.Promise))
}

// configuration is who goes by which revision.
func configuration(c *control.Cluster) (out []Line) {
	out = append(out, Line{"Configuration of all nodes: " + revision(c.Revision), false})
	if c.Newest > c.Revision {
		out[0] = Line{out[0].Text + fmt.Sprintf("; the newest is %d", c.Newest), true}
	}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Behind != "" {
			out = append(out, Line{fmt.Sprintf("Node %s does not have the newest configuration: %s", n.Name, n.Behind), true})
		}
	}
	return out
}

func revision(n int64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("revision %d", n)
}

// promise is what is promised over all nodes.
func promise(p *control.ClusterPromiseTotals) Line {
	if p == nil {
		return Line{"Promises over all nodes: nothing is heard of a node that keeps them", false}
	}
	text := fmt.Sprintf("Promises over all nodes: kept by node %s for %v; %s, %d tokens/s reserved, limits of %d, %d served in the last second",
		p.Controller, listing.Seconds(p.Elected), cli.Counted(int(p.Promises), "promise"), p.Reserved, p.Limit, p.Served)
	if p.Missed > 0 {
		text += fmt.Sprintf(", %d MISSED", p.Missed)
	}
	if len(p.Silent) > 0 {
		text += "; silent: " + strings.Join(p.Silent, ", ")
	}
	return Line{text, p.Missed > 0 || len(p.Silent) > 0}
}
