package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
	"lunar/conf"
	"lunar/target"
	"lunar/target/scsi"
)

const peerConfig = `
cluster: {name: c, node: NODE}
portal-groups:
  a: {tag: 1, listen: ["192.0.2.1:3260"], alua: {preferred: true}}
  b: {tag: 2, listen: ["198.51.100.1:3260"], alua: {state: non-optimized}}
ceph: {main: {}}
volumes: {db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2]}}
targets: {"iqn.2026-11.test:t": {portal-groups: [a], luns: {0: db}}}
`

// TestComplain: a node that has come with another one's tag all the same is told of once, as long
// as nothing else is wrong.
func TestComplain(t *testing.T) {
	var log strings.Builder
	m := &membership{log: slog.New(slog.NewTextHandler(&log, nil))}
	all := peersIn(t)
	own := all["n1"]
	twin := peers{"n1": own, "n2": own}
	for _, p := range []peers{all, twin, twin, all, twin} {
		m.complain(p.clash("n1", &own))
	}
	if n := strings.Count(log.String(), "expected a tag that no other node of the cluster has"); n != 2 {
		t.Errorf("found %d messages, expected 2: %s", n, log.String())
	}
}

// TestDiffer: nodes that have other lists of a volume's owners are found.
func TestDiffer(t *testing.T) {
	all := peersIn(t)
	own := all["n1"]
	if err := all.differ("n1", &own, "db"); err != nil || len(own.Owners["db"]) != 2 {
		t.Errorf("found %v of nodes that agree, and owners %v", err, own.Owners)
	}
	own.Owners = map[string][]string{"db": {"n2", "n1"}}
	if err := all.differ("n1", &own, "db"); err == nil || !strings.Contains(err.Error(), "volumes.db.owners: found [n1 n2] on node n2") {
		t.Errorf("found %v", err)
	}
}

// TestManyVolumes: what a node tells of many volumes is what others read, and has place in the
// cluster's state; more than has place is refused before it is in force.
func TestManyVolumes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	p := peer{Lunar: "1", Targets: map[string][]uint16{}, Owners: map[string][]string{}, Images: map[string]string{}}
	grow := func(to int) {
		for len(p.Owners) < to {
			name := fmt.Sprintf("pvc-%016x%016x", random.Uint64(), random.Uint64())
			p.Owners[name], p.Images[name] = []string{"n1", "n2", "n3"}, "kubernetes/"+name
			p.Targets["iqn.2026-11.example.lunar:"+name] = []uint16{1}
		}
	}
	for _, n := range []int{0, 10, 10000} {
		grow(n)
		text := p.encode()
		var back peer
		if err := back.parse(text); err != nil || !reflect.DeepEqual(back, p) && n > 0 {
			t.Errorf("%d volumes: found others, %v", n, err)
		}
		value := ownership.Node{Incarnation: "a", About: text}.Encode()
		if _, err := mem.NewStore().Commit(nil, []cluster.Change{{Key: "/node", Value: value}}); err != nil || p.fits() != nil {
			t.Errorf("%d volumes: %v, %v", n, err, p.fits())
		}
	}
	grow(50000)
	if err := p.fits(); err == nil || !strings.Contains(err.Error(), "found 50000 with owners") {
		t.Errorf("found %v", err)
	}
}

// TestDifferImage: nodes that have another image for a volume are found.
func TestDifferImage(t *testing.T) {
	all := peersIn(t)
	own := all["n1"]
	own.Images = map[string]string{"db": "rbd/other"}
	if err := all.differ("n1", &own, "db"); err == nil || !strings.Contains(err.Error(), "volumes.db.image: found rbd/db on node n2, expected rbd/other") {
		t.Errorf("found %v", err)
	}
	if err := all.differ("n1", &own, "none"); err != nil {
		t.Errorf("a volume that nobody has: found %v", err)
	}
}

// TestFailbackRests: a volume goes back by itself only while all nodes have the same owners of it.
func TestFailbackRests(t *testing.T) {
	all := peersIn(t)
	own := all["n1"]
	m := &membership{conf: &conf.Cluster{Node: "n1"}}
	m.own.Store(&own)
	for _, c := range []struct {
		policy conf.FailbackPolicy
		owners []string
		want   time.Duration
	}{
		{conf.AutoFailback, []string{"n1", "n2"}, failbackTime}, {conf.AutoFailback, []string{"n2", "n1"}, 0}, {conf.ManualFailback, []string{"n1", "n2"}, 0},
	} {
		other := all["n2"]
		other.Owners = map[string][]string{"db": c.owners}
		m.known.Store(&peers{"n1": own, "n2": other})
		if got := m.failback(&conf.Volume{Name: "db", Failback: c.policy}); got != c.want {
			t.Errorf("%+v: found %v", c, got)
		}
	}
}

// peersIn are nodes n1 and n2, which have the same portal groups with other tags.
func peersIn(t *testing.T) peers {
	t.Helper()
	all := map[string]json.RawMessage{}
	for node, edit := range map[string]*strings.Replacer{
		"n1": strings.NewReplacer("NODE", "n1"), "n2": strings.NewReplacer("NODE", "n2", "tag: 1", "tag: 11", "tag: 2", "tag: 12", "192.0.2.1", "192.0.2.2"),
	} {
		cfg, _, err := conf.Parse("c", []byte(edit.Replace(peerConfig)))
		if err != nil {
			t.Fatal(err)
		}
		p := selfOf(cfg, func(tag uint16) (all []netip.AddrPort) {
			for _, g := range cfg.PortalGroups {
				if g.Tag == tag {
					all = g.Listen
				}
			}
			return all
		})
		all[node] = p.encode()
	}
	p, err := peersOf(all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPeers: what nodes tell of themselves makes the same access states on all nodes, and
// each node's ways to the others.
func TestPeers(t *testing.T) {
	p := peersIn(t)
	standby := func(preferred bool) scsi.PortAccess {
		return scsi.PortAccess{State: scsi.Standby, Preferred: preferred}
	}
	want := map[uint16]scsi.PortAccess{
		scsi.EveryTag: standby(false), 1: {State: scsi.ActiveOptimized, Preferred: true}, 2: {State: scsi.ActiveNonOptimized}, 11: standby(true), 12: standby(false),
	}
	if got := p.access("n1"); !reflect.DeepEqual(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
	ways := map[string][]target.Elsewhere{"iqn.2026-11.test:t": {{Tag: 11, Beside: 1, Addresses: []string{"192.0.2.2:3260"}}}}
	if got := p.elsewhere("n1"); !reflect.DeepEqual(got, ways) {
		t.Errorf("found %v, expected %v", got, ways)
	}
	own := p["n1"]
	if err := p.clash("n1", &own); err != nil {
		t.Error(err)
	}
	if err := p.clash("n3", &own); err == nil || !strings.Contains(err.Error(), "portal-groups.a.tag: found 1, which is that of a on node n1") {
		t.Errorf("found %v", err)
	}
}
