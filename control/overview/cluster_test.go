package overview

import (
	"strings"
	"testing"
	"time"

	"lunar/control"
)

// answersIn are the answers about a cluster, in a line each.
func answersIn(c *control.Cluster) string {
	at := time.Unix(100, 0)
	o := Of(&Snapshot{At: at.Add(time.Second), Status: control.Status{Cluster: c}}, &Snapshot{At: at})
	var b strings.Builder
	for _, a := range o.Answers {
		b.WriteString(a.Severity + " " + a.About + ": " + a.What + " " + a.Help + "\n")
	}
	return b.String()
}

// TestClusterAnswers: what is wrong with a cluster is told with what would help, and nothing is
// where nothing is wrong or there is no cluster.
func TestClusterAnswers(t *testing.T) {
	well := func() *control.Cluster {
		return &control.Cluster{Name: "c", Node: "n1", Joined: true, Etcd: true,
			Nodes: []control.ClusterNode{
				{Name: "n1", State: control.NodeOK, Incarnation: "a"}, {Name: "n2", State: control.NodeOK, Incarnation: "b", Link: &control.ClusterLink{Up: true, Address: "192.0.2.2:7424"}},
			},
			Volumes: []control.ClusterVolume{{Name: "db", Owner: "n2", State: "owned", Here: "follower", Owners: []string{"n1", "n2"}}},
		}
	}
	for _, c := range []*control.Cluster{nil, well()} {
		if got := answersIn(c); !strings.HasPrefix(got, "ok : All is well") {
			t.Errorf("found %q, expected nothing", got)
		}
	}
	for _, c := range []struct {
		change func(*control.Cluster)
		want   []string
	}{
		{func(c *control.Cluster) { c.Etcd, c.Joined, c.Answered = false, false, 5 }, []string{"warning n1: etcd has not answered node n1 for 5s", "Start lunar-etcd on more than half"}},
		{func(c *control.Cluster) { c.Joined, c.Why = false, "another process is the node" }, []string{"Node n1 has no place in cluster c: another process is the node."}},
		{func(c *control.Cluster) { c.Behind = "volumes.db: no" }, []string{"warning n1: Node n1 does not have the newest configuration of the cluster: volumes.db: no.", "lunar cluster config"}},
		{func(c *control.Cluster) {
			c.Nodes[0].Unable = []control.ClusterUnable{{Volume: "db", Why: "no key file."}}
		}, []string{"warning n1: Node n1 cannot open volume db: no key file. It is not given the volume"}},
		{func(c *control.Cluster) { c.Nodes[1].Stranger = true }, []string{"failed n2: Disks of node n2 have other serial numbers", "copy cluster-identity.json"}},
		{func(c *control.Cluster) { c.Nodes[1].State, c.Nodes[1].Revision = control.NodeBehind, 6 }, []string{"warning n2: Node n2 does not have the newest configuration of the cluster: it has revision 6."}},
		{func(c *control.Cluster) { c.Nodes[1].State, c.Nodes[1].Silent = control.NodeSilent, 3 }, []string{"Node n2 is silent: etcd has not heard it for 3s, and no link does.", "lunar cluster fence n2"}},
		{func(c *control.Cluster) { c.Nodes[1].State = control.NodeCut }, []string{"Node n2 is cut off from etcd: links alone hear it."}},
		{func(c *control.Cluster) { c.Nodes[1].State, c.Nodes[1].Draining = control.NodeAway, true }, []string{"note n2: Node n2 does not live. It was drained before"}},
		{func(c *control.Cluster) { c.Nodes[1].Link.Up, c.Nodes[1].Link.Why = false, "connection refused" }, []string{"warning n2: There is no link to node n2 at 192.0.2.2:7424: connection refused.", "standby"}},
		{func(c *control.Cluster) { c.Volumes[0].InFlux, c.Nodes[1].State = true, control.NodeAway }, []string{"failed db: Volume db has no owner that serves it: its owner, node n2, is away. Its commands wait. Node n2 may own it, and does not live."}},
		{func(c *control.Cluster) {
			c.Volumes[0].InFlux, c.Volumes[0].State, c.Nodes[0].Draining = true, "free", true
		}, []string{"node n2 has closed it, and no other node has taken it", "lunar cluster drain n1 --off lets node n1 take it."}},
		{func(c *control.Cluster) { c.Volumes[0].InFlux, c.Volumes[0].Here = true, "fencing" }, []string{"this node is taking it over"}},
	} {
		of := well()
		c.change(of)
		got := answersIn(of)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("found %q, expected %q in it", got, want)
			}
		}
	}
}

// TestClusterVolumes: of many volumes those are shown that are in flux.
func TestClusterVolumes(t *testing.T) {
	c := &control.Cluster{Name: "c", Node: "n1", Joined: true, Etcd: true, Volumes: make([]control.ClusterVolume, mostListed+50)}
	c.Volumes[mostListed+10] = control.ClusterVolume{Name: "late", InFlux: true}
	at := time.Unix(100, 0)
	o := Of(&Snapshot{At: at.Add(time.Second), Status: control.Status{Cluster: c}}, &Snapshot{At: at})
	if len(o.Cluster.Volumes) != mostListed || o.LeftOut.Owned != 50 || o.Cluster.Volumes[0].Name != "late" || c.Volumes[0].Name != "" {
		t.Errorf("found %d volumes, %d left out, %q first", len(o.Cluster.Volumes), o.LeftOut.Owned, o.Cluster.Volumes[0].Name)
	}
}
