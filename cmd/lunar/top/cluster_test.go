package top

import (
	"bytes"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"lunar/control"
)

// inCluster is a sample of a node of a cluster.
func inCluster() control.Overview {
	o, heard := sample(), 0.2
	since := time.Date(2026, 11, 26, 2, 30, 0, 0, time.Local)
	o.Cluster = &control.Cluster{
		Name: "prod", Node: "n1", Joined: true, Etcd: true, Answered: 0.4, Lease: 1.5, Revision: 7, Newest: 8,
		Nodes: []control.ClusterNode{
			{Name: "n1", State: control.NodeOK, Incarnation: "FIRSTPROCESS", Version: "1.0", Revision: 7, Heard: true, Lease: &control.ClusterLease{Age: 0.4, Left: 1.5}, Hears: []string{"n2"}, Since: since},
			{Name: "n2", State: control.NodeSilent, Incarnation: "OTHERPROCESS", Version: "1.0", Revision: 8, Silent: 3, Link: &control.ClusterLink{Address: "192.0.2.2:7424", Heard: &heard, Why: "connection refused"}, Hears: []string{}, Behind: "volumes.db: no", Unable: []control.ClusterUnable{{Volume: "db", Why: "no key file"}}},
		},
		Volumes: []control.ClusterVolume{
			{Name: "db", Owner: "n2", State: "owned", Epoch: 3, Since: since, InFlux: true, Here: "suspecting", Owners: []string{"n1", "n2"}, Unable: []string{"n2"}, Access: []control.ClusterAccess{{Node: "n1", State: "standby"}, {Node: "n2", State: "optimized"}}},
			{Name: "log", Owner: "n1", State: "owned", Epoch: 1, Here: "owner", Owners: []string{"n1"}},
		},
		Promise: &control.ClusterPromiseTotals{Controller: "n2", Elected: 60, Promises: 2, Reserved: 1000, Limit: 5000, Served: 900, Missed: 1, Silent: []string{"n3"}, Nodes: []control.ClusterNodeTotals{{Node: "n2", Reserved: 400, Served: 900, Capacity: 20000}}},
	}
	o.Answers = append(o.Answers, control.Answer{Severity: "warning", Kind: "cluster", About: "n2", What: "Node n2 is silent.", Help: "Fence it."})
	return o
}

// TestCluster: the last page has the cluster, and enter opens a node; without a cluster there is
// no such page.
func TestCluster(t *testing.T) {
	m := after(t, newModel(nil, false), tea.WindowSizeMsg{Width: 200, Height: 60}, answer{overview: inCluster()}, "9")
	for _, want := range []string{
		"9 cluster", "Cluster prod, node n1: joined", "renewed the lease 400ms ago, and cached data are served for 1.5s more", "revision 7; the newest is 8", "Node n2 does not have the newest configuration: volumes.db: no",
		"kept by node n2 for 1m0s; 2 promises, 1000 tokens/s reserved, limits of 5000, 900 served in the last second, 1 MISSED; silent: n3",
		"n1 n2 (UNABLE)", "Node n2 cannot open volume db, and is not to own it: no key file", "silent 3s", "DOWN", "FIRSTPRO", "n1 standby, n2 optimized", "suspecting", "20000",
	} {
		if got := text(m); !strings.Contains(got, want) {
			t.Errorf("found no %q in\n%s", want, got)
		}
	}
	m = after(t, m, "down", "enter")
	for _, want := range []string{"node n2", "process OTHERPROCESS", "link to 192.0.2.2:7424 connection refused", "cannot open volume db: no key file", "Node n2 is silent.", "Fence it.", "db"} {
		if got := text(m); !strings.Contains(got, want) || strings.Contains(got, "log ") {
			t.Errorf("node n2: found no %q, or another one's volume, in\n%s", want, got)
		}
	}
	m = after(t, m, "esc", answer{overview: sample()})
	if got := text(m); !strings.Contains(got, "a node of no cluster any more") || strings.Contains(got, "9 cluster") {
		t.Errorf("no cluster any more: found\n%s", got)
	}
	if m = after(t, began(t), "9"); m.page != 0 || strings.Contains(text(m), "cluster") {
		t.Errorf("no cluster: found page %d\n%s", m.page, text(m))
	}
	var out bytes.Buffer
	o := inCluster()
	if err := Once(&out, &o); err != nil || !strings.Contains(out.String(), "\nCLUSTER\nCluster prod, node n1: joined\n") || !strings.Contains(out.String(), "RESERVED-LEFT") {
		t.Errorf("once: found %v\n%s", err, out.String())
	}
}
