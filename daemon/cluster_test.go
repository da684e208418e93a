package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore/rbd/fake"
	"lunar/cluster"
	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/freeport"
	"lunar/internal/initiator"
)

const nodeConfig = `
server: {threads: 1, buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, segment: none}
cluster: {name: lab, node: NODE, lease: 4s, suspect: 2s, hold: 1s}
portal-groups: {net: {tag: TAG, listen: ["PORTAL"]}}
ceph: {main: {config: /etc/ceph/ceph.conf, user: lunar}}
volumes: {db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2, n3]CACHE}}
targets: {"iqn.2026-11.test:t": {luns: {0: db}}}
`

// lab is three servers of a cluster in one process.
type lab struct {
	t       *testing.T
	network *mem.Network
	wires   *linktest.Network // between the nodes
	ceph    *fake.Cluster
	nodes   map[string]*clusterNode
	cached  bool
}

type clusterNode struct {
	*serving
	name, dir, portal string
}

func newLab(t *testing.T, cache string) *lab {
	t.Helper()
	l := newLabOf(t, strings.ReplaceAll(nodeConfig, "CACHE", cache))
	l.cached = cache != ""
	return l
}

// newLabOf is a lab whose nodes have a configuration of their own, after each was prepared.
func newLabOf(t *testing.T, config string, prepare ...func(*clusterNode)) *lab {
	t.Helper()
	l := &lab{t: t, network: mem.NewNetwork(), wires: linktest.New(), ceph: clusterOf(t, "rbd/db"), nodes: map[string]*clusterNode{}}
	open, transport := openState, linkTransport
	linkTransport = func(c *conf.Cluster, _ string) (link.Transport, string, error) {
		return l.wires.Config(c.Node, "").Transport, c.Node, nil
	}
	openState = func(c *conf.Cluster, _ string, _ *slog.Logger) (cluster.State, error) {
		return l.network.State(c.Node), nil
	}
	t.Cleanup(func() {
		openState, linkTransport = open, transport
		l.wires.Wait()
		if t.Failed() || testing.Verbose() {
			for _, n := range l.nodes {
				t.Logf("%s:\n%s", n.name, n.log)
			}
		}
	})
	for i := range 3 {
		n := &clusterNode{name: fmt.Sprintf("n%d", i+1), dir: t.TempDir()}
		var err error
		if n.portal, err = freeport.Loopback(); err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer("NODE", n.name, "TAG", fmt.Sprint(i+1), "PORTAL", n.portal).Replace(config)
		writeFile(t, filepath.Join(n.dir, "tgtd.yaml"), text)
		l.nodes[n.name] = n
		for _, f := range prepare {
			f(n)
		}
		l.restart(n.name)
	}
	return l
}

// restart starts a node.
func (l *lab) restart(node string) {
	l.t.Helper()
	n := l.nodes[node]
	n.serving = serve(l.t, "-c", filepath.Join(n.dir, "tgtd.yaml"), "--state-dir", n.dir)
}

// lunar runs a command at a node.
func (l *lab) lunar(node string, status int, args ...string) string {
	l.t.Helper()
	var out, messages strings.Builder
	if got := run(l.t.Context(), append(args, "--state-dir", l.nodes[node].dir), cli.Console{Out: &out, Err: &messages}); got != status {
		l.t.Fatalf("lunar %q: status %d, expected %d: %s%s", args, got, status, out.String(), messages.String())
	}
	return out.String() + messages.String()
}

// owner is who owns the volume, as a node sees it.
func (l *lab) owner(node string) string {
	for line := range strings.Lines(l.lunar(node, cli.ExitOK, "cluster", "status")) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "db" && f[2] == "owned" {
			return f[1]
		}
	}
	return ""
}

// way is a session with one node.
type way struct {
	node string
	conn *initiator.Conn
}

// multipath is an initiator with a path to each node, as a host is with multipath: what
// fails on one path it tries on the next.
type multipath struct {
	t      *testing.T
	paths  []*way
	at     int
	failed atomic.Int64 // that were tried again
	spread bool         // commands are dealt over all paths
}

func (l *lab) multipath(isid byte) *multipath {
	m := &multipath{t: l.t}
	for _, name := range []string{"n1", "n2", "n3"} {
		p := &way{name, dial(l.t, l.nodes[name].portal, initiator.Options{Target: "iqn.2026-11.test:t", ISID: [6]byte{0x80, 1: isid}})}
		m.paths = append(m.paths, p)
	}
	return m
}

// command runs one until it ends well. A path that does not lead to the owner now is left,
// and so is one that has failed.
func (m *multipath) command(cdb, out []byte, in int) []byte {
	if m.spread {
		m.at++
	}
	seen := map[string]int{}
	for range 1000 {
		p := m.paths[m.at%len(m.paths)]
		if p.conn != nil {
			r, err := p.conn.Command(cdb, 0, out, in)
			switch {
			case err != nil:
				m.t.Logf("%s: %v", p.node, err)
				p.conn = nil
			case r.Status == 0:
				return r.In
			default:
				key, asc, ascq := r.SenseKey()
				seen[fmt.Sprintf("%s %x %x %x", p.node, key, asc, ascq)]++
				if key == 6 {
					continue // a unit attention
				}
				if code := [3]byte{key, asc, ascq}; code != [3]byte{2, 4, 0x0a} && code != [3]byte{2, 4, 0x0b} {
					m.t.Errorf("node %s: status %#x, sense %x", p.node, r.Status, code)
					return nil
				}
			}
		}
		m.failed.Add(1)
		m.at++
	}
	m.t.Errorf("%s no path leads to the volume: %v", time.Now().UTC().Format("05.000"), seen)
	return nil
}

// ledger writes a block again and again, and reads what was acknowledged last.
func (m *multipath) ledger(block uint32, stop <-chan struct{}) (rounds uint64) {
	data := make([]byte, 512)
	for ; ; rounds++ {
		select {
		case <-stop:
			return rounds
		default:
		}
		binary.BigEndian.PutUint64(data, rounds+1)
		m.command(cdb10Of(0x2a, block), data, 0)
		got := m.command(cdb10Of(0x28, block), nil, 512)
		if got == nil {
			return rounds // it was said why
		}
		if !bytes.Equal(got, data) {
			m.t.Errorf("block %d: found %d, expected %d, which was acknowledged", block, binary.BigEndian.Uint64(got), rounds+1)
			return rounds
		}
	}
}

// cdb10Of is one of a READ or WRITE (10) of one block.
func cdb10Of(opcode byte, block uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{opcode, 0}, block), 0, 0, 1, 0)
}

// TestCluster: three nodes present one disk, of which one serves it: through moves and the
// death of the owner, commands end well on some path, and what is read is what was
// acknowledged last.
func TestCluster(t *testing.T) {
	for name, cache := range map[string]string{"cached": ", cache: true", "plain": ""} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, cache)
			eventually.Holds(t, "the first node owns the volume, and all know", func() bool {
				return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
			})
			l.sameDisk()
			l.changes()
			l.rollsBack()
			stop := make(chan struct{})
			var load sync.WaitGroup
			var rounds atomic.Uint64
			for i := range 3 {
				m := l.multipath(byte(i))
				m.spread = i > 0 // most commands come to nodes that do not own the volume
				load.Go(func() { rounds.Add(m.ledger(uint32(i), stop)) })
			}
			goesOn := func() {
				t.Helper()
				m := l.multipath(9)
				m.command(cdb10Of(0x2a, 9), make([]byte, 512), 0)
			}
			for _, to := range []string{"n2", "n3", "n1"} {
				if said := l.lunar("n2", cli.ExitOK, "cluster", "move", "db", to); !strings.Contains(said, "Volume db is node "+to+"'s now.") {
					t.Errorf("found %q", said)
				}
				goesOn()
			}
			l.network.Cut("n1", true) // it dies for the others, and does not know
			l.wires.CutAll("n1", true)
			eventually.Holds(t, "another node owns the volume", func() bool { return slices.Contains([]string{"n2", "n3"}, l.owner("n2")) })
			goesOn()
			l.network.Cut("n1", false)
			l.wires.CutAll("n1", false)
			eventually.Holds(t, "the node that was cut off knows the owner", func() bool { return l.owner("n1") == l.owner("n2") && l.owner("n1") != "" })
			l.lunar("n3", cli.ExitOK, "cluster", "drain", l.owner("n3"))
			goesOn()
			close(stop)
			load.Wait()
			if rounds.Load() == 0 {
				t.Error("nothing was written")
			}
			t.Logf("%d rounds", rounds.Load())
		})
	}
}

// changes: what changes on one node other nodes hear of; what would confuse initiators is
// refused.
func (l *lab) changes() {
	l.t.Helper()
	n, file := l.nodes["n1"], filepath.Join(l.nodes["n1"].dir, "tgtd.yaml")
	more, err := freeport.Loopback()
	if err != nil {
		l.t.Fatal(err)
	}
	apply := func(status int, group, volume string) string {
		l.t.Helper()
		text := strings.NewReplacer("NODE", "n1", "TAG", "1", "PORTAL", n.portal, "CACHE", volume).Replace(nodeConfig)
		writeFile(l.t, file, strings.Replace(text, "portal-groups: {", "portal-groups: {"+group, 1))
		return l.lunar("n1", status, "apply", file, "--yes")
	}
	cache := ""
	if l.cached {
		cache = ", cache: true"
	}
	if said := apply(cli.ExitFailure, "more: {tag: 2, listen: [\""+more+"\"]}, ", cache); !strings.Contains(said, "on node n2, expected a tag that no other node of the cluster has") {
		l.t.Errorf("found %q", said)
	}
	if said := apply(cli.ExitFailure, "", ", cache: {max: 1MiB}"); !strings.Contains(said, "volumes.db.cache") {
		l.t.Errorf("found %q", said)
	}
	apply(cli.ExitOK, "more: {tag: 7, listen: [\""+more+"\"]}, ", cache+", failback: auto")
	l.ceph.Resize("rbd/db", 2<<20)
	c := dial(l.t, l.nodes["n2"].portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	eventually.Holds(l.t, "another node knows the new portal group and the size", func() bool {
		groups, err := c.Command([]byte{0xa3, 0x0a, 9: 128, 11: 0}, 0, nil, 128)
		if err != nil || groups.Status != 0 {
			return false
		}
		r, err := c.Command([]byte{0x9e, 0x10, 13: 32, 15: 0}, 0, nil, 32)
		return err == nil && len(groups.In) == 4+4*12 && len(r.In) == 32 && binary.BigEndian.Uint64(r.In) == 2<<20/512-1
	})
}

// rollsBack: the owner rolls the volume back, other nodes know its snapshots when they own it,
// and nothing of before is read from a cache.
func (l *lab) rollsBack() {
	l.t.Helper()
	m := l.multipath(8)
	write := func(round byte) { m.command(cdb10Of(0x2a, 50), bytes.Repeat([]byte{round}, 512), 0) }
	holds := func(round byte) {
		l.t.Helper()
		if got := m.command(cdb10Of(0x28, 50), nil, 512); !bytes.Equal(got, bytes.Repeat([]byte{round}, 512)) {
			l.t.Errorf("found %.10x, expected round %d", got, round)
		}
	}
	refused := func(node, why string, args ...string) {
		l.t.Helper()
		if said := l.lunar(node, cli.ExitFailure, append([]string{"volume", "snapshot", "rollback", "db", "one"}, args...)...); !strings.Contains(said, why) {
			l.t.Errorf("found %q, expected %q", said, why)
		}
	}
	write(1)
	l.lunar("n1", cli.ExitOK, "volume", "snapshot", "create", "db", "--name", "one")
	write(2)
	refused("n2", "node n1 has it", "--force")
	refused("n1", "on all nodes")
	l.lunar("n1", cli.ExitOK, "volume", "snapshot", "rollback", "db", "one", "--force")
	holds(1)
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n2")
	holds(1)
	said := l.lunar("n2", cli.ExitOK, "volume", "snapshot", "list", "db")
	before := said[strings.Index(said, "before-"):]
	l.lunar("n2", cli.ExitOK, "volume", "snapshot", "rollback", "db", strings.Fields(before)[0], "--force")
	holds(2)
	l.lunar("n2", cli.ExitOK, "cluster", "move", "db", "n1")
	holds(2)
}

// sameDisk compares what nodes say of the volume.
func (l *lab) sameDisk() {
	l.t.Helper()
	ask := func(m *multipath, cdb []byte, in int) (all []string) {
		for _, p := range m.paths {
			r, err := p.conn.Command(cdb, 0, nil, in)
			if err == nil && r.Status == 2 { // told of a change, perhaps
				r, err = p.conn.Command(cdb, 0, nil, in)
			}
			if err != nil || r.Status != 0 {
				l.t.Fatalf("%s: %+v, %v", p.node, r, err)
			}
			all = append(all, string(r.In))
		}
		return all
	}
	m := l.multipath(7)
	for _, p := range m.paths {
		settle(l.t, p.conn, 0)
	}
	groups := []byte{0xa3, 0x0a, 9: 128, 11: 0}
	eventually.Holds(l.t, "all nodes know of all portal groups", func() bool {
		return !slices.ContainsFunc(ask(m, groups, 128), func(s string) bool { return len(s) != 4+3*12 })
	})
	for name, c := range map[string]struct {
		cdb []byte
		in  int
	}{
		"INQUIRY": {inquiry, 96}, "serial": {serial, 96}, "block limits": {[]byte{0x12, 1, 0xb0, 0, 96, 0}, 96},
		"READ CAPACITY (16)": {[]byte{0x9e, 0x10, 13: 32, 15: 0}, 32}, "REPORT TARGET PORT GROUPS": {groups, 128},
	} {
		if got := ask(m, c.cdb, c.in); got[0] != got[1] || got[0] != got[2] {
			l.t.Errorf("%s: found %x", name, got)
		}
	}
	eventually.Holds(l.t, "all nodes know which nodes relay", func() bool {
		told := ask(m, groups, 128)
		states := []byte{told[0][4] & 15, told[0][16] & 15, told[0][28] & 15}
		return bytes.Equal(states, []byte{0, 1, 1}) && told[1] == told[0] && told[2] == told[0]
	})
	for _, p := range m.paths {
		settle(l.t, p.conn, 0)
	}
	lun := func(page string) string { return page[4:][:40] } // the descriptors of the unit
	if ids := ask(m, []byte{0x12, 1, 0x83, 0, 252, 0}, 252); lun(ids[0]) != lun(ids[1]) || ids[0] == ids[1] {
		l.t.Errorf("found identification %q", ids)
	}
	found, err := dial(l.t, l.nodes["n2"].portal, initiator.Options{}).SendTargets("All")
	if err != nil || len(found) != 1 || len(found[0].Addresses) != 3 {
		l.t.Errorf("found %v, %v", found, err)
	}
}

// TestFenceUnknownVolume: a fence says so if it has not fenced all that the node had.
func TestFenceUnknownVolume(t *testing.T) {
	l := newLab(t, "")
	eventually.Holds(t, "the first node owns the volume, and all know", func() bool {
		return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
	})
	r := ownership.Record{Node: "n1", Incarnation: "other", Epoch: 1, Standing: ownership.Owned, Instances: []string{"192.0.2.9:0/1"}}
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: cluster.KeysOf("lab").Owner("alone"), Value: r.Encode()}}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the second node knows of it", func() bool { return strings.Contains(l.lunar("n2", cli.ExitOK, "cluster", "status"), "alone") })
	if said := l.lunar("n2", cli.ExitFailure, "cluster", "fence", "n1"); !strings.Contains(said, "volume alone: found it on node n1 alone") {
		t.Errorf("found %q", said)
	}
}
