package daemon

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// keyOf writes the n-th key file of a node.
func keyOf(t *testing.T, node *clusterNode, name string, n int) {
	t.Helper()
	writeFile(t, filepath.Join(node.dir, name), fmt.Sprintf("%064x", n))
}

// says waits until a node says something, or does not.
func (l *lab) says(node string, is bool, what string) {
	l.t.Helper()
	eventually.Holds(l.t, fmt.Sprintf("node %s says %q: %v", node, what, is), func() bool {
		return strings.Contains(l.lunar(node, cli.ExitOK, "cluster", "status"), what) == is
	})
}

// configure writes the configuration of a node with other text in it.
func (l *lab) configure(node, was, now string) (file string) {
	l.t.Helper()
	n := l.nodes[node]
	file = filepath.Join(n.dir, "tgtd.yaml")
	text := strings.NewReplacer("NODE", n.name, "TAG", n.name[1:], "PORTAL", n.portal, was, now).Replace(nodeConfig)
	writeFile(l.t, file, text)
	return file
}

// TestClusterEncrypted: a volume with owners is cipher text in Ceph, and each node that has the key
// serves it. One that has not says so before it is to own the volume, and does not get it.
func TestClusterEncrypted(t *testing.T) {
	encrypted := ", cache: true, encryption: {key-file: volumes.key}"
	l := newLabOf(t, strings.ReplaceAll(nodeConfig, "CACHE", encrypted), func(n *clusterNode) {
		if n.name != "n3" {
			keyOf(t, n, "volumes.key", 1)
		}
	})
	eventually.Holds(t, "the first node owns the volume, and all know", func() bool {
		return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
	})
	lacks := "Node n3 cannot open volume db, and is not to own it: key file: open"
	for _, node := range []string{"n1", "n2", "n3"} {
		l.says(node, true, lacks)
		l.says(node, true, "n1 n2 n3 (UNABLE)")
	}
	if said := l.lunar("n1", cli.ExitOK, "status"); !strings.Contains(said, "node n3 cannot open 1 volume") {
		t.Errorf("found %q", said)
	}
	m := l.multipath(1)
	data := bytes.Repeat([]byte("it is a secret. "), 32)
	write := func() { m.command(cdb10Of(0x2a, 8), data, 0) }
	holds := func() {
		t.Helper()
		if got := m.command(cdb10Of(0x28, 8), nil, 512); !bytes.Equal(got, data) {
			t.Errorf("found %.20q, expected what was written", got)
		}
	}
	write()
	if held := l.ceph.Contents("rbd/db"); bytes.Contains(held, data[:16]) || bytes.Equal(held[8*512:][:512], make([]byte, 512)) {
		t.Error("found data in clear in Ceph, or none")
	}
	l.lunar("n2", cli.ExitOK, "cluster", "move", "db", "n2")
	holds()
	if said := l.lunar("n1", cli.ExitFailure, "cluster", "move", "db", "n3"); !strings.Contains(said, "found that it cannot open it: key file") {
		t.Errorf("found %q", said)
	}
	l.network.Cut("n2", true)
	l.wires.CutAll("n2", true)
	eventually.Holds(t, "the node that has the key owns the volume", func() bool { return l.owner("n1") == "n1" && l.owner("n3") == "n1" })
	holds()
	l.network.Cut("n2", false)
	l.wires.CutAll("n2", false)

	keyOf(t, l.nodes["n3"], "volumes.key", 2)
	l.says("n1", true, "the key file is another one")
	keyOf(t, l.nodes["n3"], "volumes.key", 1)
	l.says("n1", false, "cannot open volume db")
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n3")
	holds()

	l.snapshots(m, data)
	l.rotates(encrypted)
	for _, node := range []string{"n1", "n2", "n3"} {
		l.says(node, false, "cannot open volume db")
		if l.owner(node) != node {
			l.lunar(node, cli.ExitOK, "cluster", "move", "db", node)
		}
		holds()
	}
	l.erases(data)
	for _, n := range l.nodes {
		if text := n.log.String(); strings.Contains(text, strings.Repeat("0", 63)) {
			t.Errorf("%s: found a key in the log", n.name)
		}
	}
}

// rotates has all nodes go by another key file, the owner not being the first.
func (l *lab) rotates(encrypted string) {
	l.t.Helper()
	next := strings.Replace(encrypted, "volumes.key", "new.key", 1)
	file := l.configure("n1", "CACHE", next)
	if said := l.lunar("n1", cli.ExitFailure, "apply", file, "--yes"); !strings.Contains(said, "node n1 could not open the volume: key file") {
		l.t.Errorf("found %q of a node without the new key", said)
	}
	for _, n := range l.nodes {
		keyOf(l.t, n, "new.key", 7)
	}
	if said := l.lunar("n1", cli.ExitFailure, "apply", file, "--yes"); !strings.Contains(said, "name the one before as old-key-file") {
		l.t.Errorf("found %q without the old key", said)
	}
	next = strings.Replace(next, "new.key", "new.key, old-key-file: volumes.key", 1)
	for _, node := range []string{"n1", "n2", "n3"} {
		l.lunar(node, cli.ExitOK, "apply", l.configure(node, "CACHE", next), "--yes")
	}
	next = strings.Replace(next, ", old-key-file: volumes.key", "", 1)
	for _, node := range []string{"n1", "n2", "n3"} {
		file := l.configure(node, "CACHE", next)
		eventually.Holds(l.t, node+" has heard that the owner has wrapped the header, and does without the old key", func() bool {
			return l.does(node, "apply", file, "--yes")
		})
	}
}

// does reports whether a command at a node succeeds.
func (l *lab) does(node string, args ...string) bool {
	return run(l.t.Context(), append(args, "--state-dir", l.nodes[node].dir), cli.Console{Out: io.Discard, Err: io.Discard}) == cli.ExitOK
}

// snapshots: the owner rolls the volume back to what the same master key enciphers.
func (l *lab) snapshots(m *multipath, data []byte) {
	l.t.Helper()
	owner := l.owner("n1")
	l.lunar(owner, cli.ExitOK, "volume", "snapshot", "create", "db", "--name", "one")
	m.command(cdb10Of(0x2a, 8), make([]byte, 512), 0)
	l.lunar(owner, cli.ExitOK, "volume", "snapshot", "rollback", "db", "one", "--force")
	if got := m.command(cdb10Of(0x28, 8), nil, 512); !bytes.Equal(got, data) {
		l.t.Errorf("found %.20q, expected what the snapshot has", got)
	}
	if said := l.lunar(owner, cli.ExitFailure, "volume", "snapshot", "clone", "db", "one", "copy"); !strings.Contains(said, "lunar cluster header save") {
		l.t.Errorf("found %q of a clone", said)
	}
}

// erases: without a quorum CRYPTOGRAPHIC ERASE is BUSY; with one, nothing of before is read by
// any node.
func (l *lab) erases(data []byte) {
	l.t.Helper()
	owner, m := l.owner("n1"), l.multipath(2)
	cryptoErase := []byte{0x48, 0x03, 9: 0}
	c := m.paths[owner[1]-'1'].conn
	l.network.SetQuorum(false)
	r, err := c.Command(cryptoErase, 0, nil, 0)
	for err == nil && r.Status == 2 && r.Sense[2] == 6 { // unit attentions come first
		r, err = c.Command(cryptoErase, 0, nil, 0)
	}
	if err != nil || r.Status != 8 {
		l.t.Errorf("found %+v, %v, expected BUSY", r, err)
	}
	l.network.SetQuorum(true)
	eventually.Holds(l.t, "the volume is erased", func() bool {
		r, err := c.Command(cryptoErase, 0, nil, 0)
		return err == nil && r.Status == 0
	})
	if got := m.command(cdb10Of(0x28, 8), nil, 512); bytes.Equal(got, data) {
		l.t.Error("found what was erased")
	}
	if said := l.lunar(owner, cli.ExitFailure, "volume", "snapshot", "rollback", "db", "one", "--force"); !strings.Contains(said, "another master key") {
		l.t.Errorf("found %q", said)
	}
	m.command(cdb10Of(0x2a, 8), data, 0)
	to := "n1"
	if owner == to {
		to = "n2"
	}
	eventually.Holds(l.t, "the volume moves", func() bool { return l.does(to, "cluster", "move", "db", to) })
	if got := m.command(cdb10Of(0x28, 8), nil, 512); !bytes.Equal(got, data) {
		l.t.Error("found other data than were written after the erasure")
	}
}
