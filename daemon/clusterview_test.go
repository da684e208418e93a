package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// cluster is what a node tells of the cluster.
func (l *lab) cluster(node string) (c control.Cluster) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.lunar(node, cli.ExitOK, "cluster", "status", "--json")), &c); err != nil {
		l.t.Fatal(err)
	}
	return c
}

// seen is a node as another one sees it.
func seen(c *control.Cluster, name string) (n control.ClusterNode) {
	for _, n := range c.Nodes {
		if n.Name == name {
			return n
		}
	}
	return n
}

// TestClusterView: each node tells leases, links, owners and promises of all; one that etcd does not
// hear is told from one that nobody hears.
func TestClusterView(t *testing.T) {
	l := newLab(t, "")
	eventually.Holds(t, "all nodes are well, linked and promised for", func() bool {
		c := l.cluster("n2")
		for _, n := range c.Nodes {
			if n.State != control.NodeOK || n.Incarnation == "" || n.Lease == nil || n.Lease.Left <= 0 || len(n.Hears) != 2 || n.Version == "" {
				return false
			}
			if l := n.Link; n.Name == "n2" != (l == nil) || l != nil && (!l.Up || l.Heard == nil || l.RoundTrip <= 0) {
				return false
			}
		}
		return len(c.Nodes) == 3 && c.Etcd && c.Promise != nil && len(c.Promise.Nodes) == 3
	})
	eventually.Holds(t, "the volume has its owner, and the best path leads there", func() bool {
		c := l.cluster("n3")
		if len(c.Volumes) != 1 {
			return false
		}
		v, want := c.Volumes[0], map[string]string{"n1": "optimized", "n2": "non-optimized", "n3": "non-optimized"}
		for _, a := range v.Access {
			if want[a.Node] != a.State {
				return false
			}
		}
		return v.OwnedBy("n1") && !v.InFlux && time.Since(v.Since) < time.Hour && len(v.Access) == 3 && strings.Join(v.Owners, " ") == "n1 n2 n3"
	})
	for _, want := range []string{"CLUSTER\nCluster lab, node n1: joined\n", "Promises over all nodes: kept by node n"} {
		if said := l.lunar("n1", cli.ExitOK, "top", "--once"); !strings.Contains(said, want) {
			t.Errorf("found no %q in %s", want, said)
		}
	}
	l.network.Cut("n3", true)
	eventually.Holds(t, "one that etcd does not hear is cut, and knows it", func() bool {
		one, three := l.cluster("n1"), l.cluster("n3")
		return seen(&one, "n3").State == control.NodeCut && seen(&three, "n3").State == control.NodeCut && !three.Etcd && !three.Joined && three.Answered > 0
	})
	l.wires.CutAll("n3", true)
	eventually.Holds(t, "one that nobody hears is away, and its link down", func() bool {
		c := l.cluster("n1")
		three := seen(&c, "n3")
		return three.State == control.NodeAway && three.Link != nil && !three.Link.Up && three.Link.Why != "" && len(three.Hears) == 0
	})
	if said := l.lunar("n1", cli.ExitOK, "status"); !strings.Contains(said, "node n3 is away") {
		t.Errorf("found %q", said)
	}
	l.wires.CutAll("n3", false)
	l.network.Cut("n3", false)
	eventually.Holds(t, "all is well again", func() bool {
		c := l.cluster("n1")
		return seen(&c, "n3").State == control.NodeOK && seen(&c, "n3").Link.Up
	})
}

// TestPathsToCutOwner: an owner that etcd alone does not hear is reached through the other nodes as before,
// also after its record has gone.
func TestPathsToCutOwner(t *testing.T) {
	l := newLab(t, "")
	want := "[{n1 optimized} {n2 non-optimized} {n3 non-optimized}]"
	paths := func() string {
		c := l.cluster("n2")
		if len(c.Volumes) != 1 || !c.Volumes[0].OwnedBy("n1") {
			return "another owner"
		}
		return fmt.Sprint(c.Volumes[0].Access)
	}
	eventually.Holds(t, "all nodes lead to the owner", func() bool { return paths() == want })
	l.network.Cut("n1", true)
	eventually.Holds(t, "the state has given the owner up", func() bool {
		c := l.cluster("n2")
		one := seen(&c, "n1")
		return one.Incarnation == "" && one.State == control.NodeCut
	})
	for until := time.Now().Add(3 * peersEvery); time.Now().Before(until); time.Sleep(peersEvery / 10) {
		if got := paths(); got != want {
			t.Fatalf("found %s, expected %s", got, want)
		}
	}
	host := l.multipath(7)
	host.at = 1
	host.command(cdb10Of(0x28, 0), nil, 512)
	if host.failed.Load() != 0 {
		t.Error("a path through another node does not lead to the owner")
	}
}

// alarming is a state whose members tell something of themselves.
type alarming struct {
	cluster.State
	alarms []etcd.Alarm
	err    error
}

func (s alarming) Alarms(context.Context) ([]etcd.Alarm, error) { return s.alarms, s.err }

// newAlarmingLab is a lab with such states, where an error is that of n3 alone.
func newAlarmingLab(t *testing.T, alarms []etcd.Alarm, err error) *lab {
	return newLabOf(t, strings.ReplaceAll(nodeConfig, "CACHE", ""), func(n *clusterNode) {
		if n.name != "n1" {
			return
		}
		open := openState
		openState = func(c *conf.Cluster, dir string, log *slog.Logger) (cluster.State, error) {
			s, failed := open(c, dir, log)
			if c.Node != "n3" {
				return alarming{s, alarms, nil}, failed
			}
			return alarming{s, alarms, err}, failed
		}
	})
}

// TestStateFull: that nothing can be changed in etcd is told, though it keeps leases alive and nothing else
// fails before a volume is to be taken over.
func TestStateFull(t *testing.T) {
	l := newAlarmingLab(t, []etcd.Alarm{{Member: 1, Kind: etcd.NoSpace}}, nil)
	eventually.Says(t, func() string { return l.lunar("n2", cli.ExitOK, "status") }, "degraded", "the state of cluster lab is full")
	eventually.Says(t, func() string { return l.lunar("n3", cli.ExitOK, "cluster", "status") }, "etcd is FULL: nobody takes volumes over", "quota")
}

// TestWhyEtcdIsSilent: a node to which etcd does not answer tells what it meets instead.
func TestWhyEtcdIsSilent(t *testing.T) {
	l := newAlarmingLab(t, nil, errors.New("the certificate has expired"))
	l.network.Cut("n3", true)
	eventually.Says(t, func() string { return l.lunar("n3", cli.ExitOK, "cluster", "status") }, "NOT JOINED: etcd does not answer", "; the certificate has expired")
}

// TestClusterStates: what a node is called, and when a volume is in flux.
func TestClusterStates(t *testing.T) {
	now := time.Now()
	view := func() *clusterView {
		return &clusterView{now: now, cfg: &conf.Config{}, known: peers{}, Status: node.Status{
			Node: "n1", Nodes: map[string]node.NodeStatus{
				"n1": {Peer: ownership.Peer{Incarnation: "a", Heard: true}}, "n2": {Peer: ownership.Peer{Incarnation: "b", Heard: true}},
			}, Linked: map[string]ownership.Linked{}, Drained: map[string]bool{}, Volumes: map[string]node.VolumeStatus{},
		}}
	}
	silent := node.NodeStatus{Peer: ownership.Peer{Incarnation: "b", Unheard: now.Add(-3 * time.Second)}}
	linked := map[string]ownership.Linked{"n2": {Incarnation: "b", Until: now.Add(time.Minute)}}
	for want, change := range map[string]func(*clusterView){
		control.NodeOK:      func(*clusterView) {},
		control.NodeSilent:  func(v *clusterView) { v.Nodes["n2"] = silent },
		control.NodeCut:     func(v *clusterView) { v.Nodes["n2"], v.Linked = silent, linked },
		control.NodeAway:    func(v *clusterView) { delete(v.Nodes, "n2"); v.Drained["n2"] = true },
		control.NodeDrained: func(v *clusterView) { v.Drained["n2"] = true },
		control.NodeBehind:  func(v *clusterView) { v.known["n1"] = peer{Config: &peerRevision{Revision: 7}} },
	} {
		v := view()
		change(v)
		if n := v.nodeOf("n2", v.newest()); n.State != want || n.Draining != v.Drained["n2"] || want == control.NodeSilent && n.Silent != 3 {
			t.Errorf("found %+v, expected %s", n, want)
		}
	}
	cut := view()
	cut.Mute = true
	if n := cut.nodeOf("n1", 0); n.State != control.NodeCut {
		t.Errorf("a node that etcd does not answer: found %s of itself", n.State)
	}
	for _, c := range []struct {
		owner  ownership.Record
		here   ownership.State
		linked bool
		want   bool
	}{
		{ownership.Record{Node: "n2", Incarnation: "b", Standing: ownership.Owned}, ownership.Follower, false, false},
		{ownership.Record{Node: "n2", Incarnation: "b", Standing: ownership.Owned}, ownership.Suspecting, false, true},
		{ownership.Record{Node: "n2", Incarnation: "b", Standing: ownership.Free}, ownership.Follower, false, true},
		{ownership.Record{Node: "n2", Incarnation: "before", Standing: ownership.Owned}, ownership.Follower, false, true},
		{ownership.Record{Node: "n9", Incarnation: "z", Standing: ownership.Owned}, ownership.Follower, false, true},
		{ownership.Record{Node: "n9", Incarnation: "z", Standing: ownership.Owned}, "", false, false},
		{ownership.Record{}, ownership.Follower, false, true},
		{ownership.Record{Node: "n3", Incarnation: "c", Standing: ownership.Owned}, ownership.Follower, true, false},
	} {
		v := view()
		if c.linked {
			v.Linked["n3"] = ownership.Linked{Incarnation: "c", Until: now.Add(time.Minute)}
		}
		if got := v.inFlux(&node.VolumeStatus{Owner: c.owner, State: c.here}); got != c.want {
			t.Errorf("%+v: found %v", c, got)
		}
	}
}

// TestStartsWithoutImage: nodes serve their volumes also while one of them has no image, and say which
// they do not wait for, which is served when its image is there.
func TestStartsWithoutImage(t *testing.T) {
	config := strings.NewReplacer("CACHE", "", "hold: 1s", "hold: 25s", "volumes: {", "volumes: {gone: {type: rbd, ceph: main, image: rbd/gone, owners: [n1, n2, n3]}, ").Replace(nodeConfig)
	l := newLabOf(t, config)
	eventually.Holds(t, "all nodes know the owner of what can be served", func() bool { return l.owner("n1") != "" && l.owner("n1") == l.owner("n3") })
	for _, n := range l.nodes {
		if found := n.log.String(); !strings.Contains(found, "without waiting for them\" volumes=[gone]") {
			t.Errorf("%s has waited for the volume, or does not say that it has not", n.name)
		}
	}
	l.ceph.Create("rbd/gone", 1<<20)
	eventually.Holds(t, "the volume has an owner", func() bool {
		return strings.Count(l.lunar("n1", cli.ExitOK, "cluster", "status"), " owned ") == 2
	})
}
