package control

import (
	"fmt"
	"testing"
)

// TestSummary: the line says what is wrong first, and stays one line.
func TestSummary(t *testing.T) {
	volumes := func(states ...string) (out []Volume) {
		for i, s := range states {
			out = append(out, Volume{Name: fmt.Sprint("v", i), Health: Health{State: s}})
		}
		return out
	}
	for want, s := range map[string]Status{
		"ok: no volume, no session": {},
		"ok: 2 volumes, 1 session":  {Volumes: volumes("ok", "ok"), Sessions: make([]Session, 1)},
		"ok: 1 volume, no session; volume old is still being closed, 1 warning": {Volumes: volumes("ok"), Closing: []string{"old"}, Warnings: []string{"w"}},
		"ok: no volume, no session; 2 drains that the configuration file does not have, 1 QoS change that the configuration file does not have": {
			Drift: []Drift{{Kind: "qos"}, {Kind: "drain"}, {Kind: "drain"}}},
		"ok: 1 volume, no session; volume f is frozen": {Volumes: []Volume{{Name: "f", Frozen: &FrozenVolume{}}}},
		"ok: 1 volume, no session; node a owns 1 of 2 volumes of cluster c": {
			Volumes: volumes("ok"), Cluster: &Cluster{Name: "c", Node: "a", Joined: true, Etcd: true, Volumes: []ClusterVolume{{Owner: "a", State: "owned"}, {Owner: "b", State: "owned"}}}},
		"degraded: node a has no place in cluster c; no volume, no session; node a owns 0 of 0 volumes of cluster c": {Cluster: &Cluster{Name: "c", Node: "a", Etcd: true}},
		"ok: no volume, no session; node a owns 0 of 0 volumes of cluster c, node a cannot open 2 volumes": {
			Cluster: &Cluster{Name: "c", Node: "a", Joined: true, Etcd: true, Nodes: []ClusterNode{{Name: "a", State: NodeOK, Unable: make([]ClusterUnable, 2)}}}},
		"degraded: disks of node b have other serial numbers than on other nodes; no volume, no session; node a owns 0 of 0 volumes of cluster c": {
			Cluster: &Cluster{Name: "c", Node: "a", Joined: true, Etcd: true, Nodes: []ClusterNode{{Name: "b", State: NodeOK, Stranger: true}}}},
		"degraded: etcd of cluster c does not answer, or has no majority, volume db has no owner that serves it; no volume, no session; node a owns 0 of 1 volumes of cluster c": {
			Cluster: &Cluster{Name: "c", Node: "a", Volumes: []ClusterVolume{{Name: "db", Owner: "b", State: "owned", InFlux: true}}}},
		"ok: no volume, no session; node a owns 0 of 0 volumes of cluster c, node b is silent, node d is drained and away, no link to b": {
			Cluster: &Cluster{Name: "c", Node: "a", Joined: true, Etcd: true, Nodes: []ClusterNode{
				{Name: "a", State: NodeOK}, {Name: "b", State: NodeSilent, Incarnation: "i", Link: &ClusterLink{}}, {Name: "d", State: NodeAway, Draining: true, Link: &ClusterLink{}}}}},
		"degraded: volume v1 degraded, the cache's segment was removed; 2 volumes, no session": {Volumes: volumes("ok", "degraded"), Cache: &Cache{SegmentLost: true}},
		"failed: volume v0 degraded, volume v1 failed, iSER is off; 2 volumes, no session":     {Volumes: volumes("degraded", "failed"), RDMA: &RDMA{Off: "x"}},
		"failed: volume v0 failed, volume v1 failed, volume v2 failed, and 2 more; 5 volumes, no session": {
			Volumes: volumes("failed", "failed", "failed", "failed", "degraded")},
	} {
		if state, line := s.Summary(); line != want || line[:len(state)] != state {
			t.Errorf("found %s, %q\nexpected %q", state, line, want)
		}
	}
}
