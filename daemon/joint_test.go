package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/ownership"
	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// ownConfig is what is a node's own beside jointConfig.
const ownConfig = `
server: {threads: 1, buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, segment: none}
cluster: {name: lab, node: NODE, lease: 4s, suspect: 2s, hold: 1s}
portal-groups: {net: {tag: TAG, listen: ["PORTAL"]}}
volumes: {scratch: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:NODE": {luns: {0: scratch}}}
`

const jointConfig = `
ceph: {main: {config: /etc/ceph/ceph.conf, user: lunar}}
auth-groups: {hosts: {chap: [{user: alice, secret: "open sesame please"}]}}
volumes:
  db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2, n3]}
targets:
  "iqn.2026-11.test:t": {auth-group: hosts, luns: {0: db}}
`

// apply makes a text the cluster's configuration.
func (l *lab) apply(node string, status int, text string, flags ...string) string {
	l.t.Helper()
	file := filepath.Join(l.t.TempDir(), "cluster.yaml")
	writeFile(l.t, file, text)
	return l.lunar(node, status, append([]string{"apply", "--cluster", file}, flags...)...)
}

// stateOf is what a node's lunar cluster status says of a node.
func (l *lab) stateOf(of, node string) (state, revision string) {
	for line := range strings.Lines(l.lunar(of, cli.ExitOK, "cluster", "status")) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == node {
			return f[2], f[3]
		}
	}
	return "", ""
}

// TestJointConfiguration: one text is the configuration of all nodes, beside what each has of
// its own; secrets of it are shown to nobody; it can be changed and rolled back.
func TestJointConfiguration(t *testing.T) {
	l := newLabOf(t, ownConfig)
	said := l.apply("n1", cli.ExitOK, jointConfig)
	for _, want := range []string{"node n1: 4 changes, in force", "node n3: 4 changes, in force", "It is revision 1"} {
		if !strings.Contains(said, want) {
			t.Errorf("found %q, expected %q", said, want)
		}
	}
	eventually.Holds(t, "the volume has an owner, and all know", func() bool {
		return l.owner("n1") == "n1" && l.owner("n2") == "n1" && l.owner("n3") == "n1"
	})
	shown := l.lunar("n2", cli.ExitOK, "cluster", "config", "show")
	if strings.Contains(shown, "sesame") || !strings.HasPrefix(shown, revisionMark+"1\n") || !strings.Contains(shown, "owners: [n1, n2, n3]") {
		t.Errorf("found %q", shown)
	}
	for _, what := range []string{"config", "show"} {
		args := map[string][]string{"config": {"config"}, "show": {"volume", "show", "db"}}[what]
		if said := l.lunar("n2", cli.ExitOK, args...); !strings.Contains(said, "rbd/db") || strings.Contains(said, "sesame") {
			t.Errorf("%s: found %q", what, said)
		}
	}
	if said := l.lunar("n2", cli.ExitFailure, "volume", "set", "db", "failback=auto"); !strings.Contains(said, "lunar apply --cluster changes it") {
		t.Errorf("found %q", said)
	}
	changed := strings.Replace(shown, "owners: [n1, n2, n3]", "owners: [n1, n2, n3], failback: auto", 1)
	if said := l.apply("n3", cli.ExitOK, changed, "--dry-run"); !strings.Contains(said, "volumes.db.failback") || !strings.Contains(said, "would be revision 2") {
		t.Errorf("found %q", said)
	}
	if said := l.apply("n3", cli.ExitOK, changed); !strings.Contains(said, "It is revision 2") {
		t.Errorf("found %q", said)
	}
	if said := l.apply("n3", cli.ExitFailure, changed); !strings.Contains(said, "found revision 2 as the newest, expected 1") {
		t.Errorf("a text that means an older revision: found %q", said)
	}
	l.login("n2", "alice", "open sesame please") // which the text had not
	if said := l.lunar("n1", cli.ExitOK, "cluster", "config", "rollback", "1"); !strings.Contains(said, "It is revision 3") {
		t.Errorf("found %q", said)
	}
	if said := l.lunar("n1", cli.ExitOK, "cluster", "config", "history"); strings.Count(said, "\n") != 4 || !strings.Contains(said, "roll back to revision 1") || strings.Contains(said, "sesame") {
		t.Errorf("found %q", said)
	}
	eventually.Holds(t, "all nodes go by it, and all know", func() bool {
		for of := range l.nodes {
			if _, revision := l.stateOf("n2", of); revision != "3" {
				return false
			}
		}
		return true
	})
	if said := l.apply("n2", cli.ExitOK, jointConfig); !strings.Contains(said, "It is revision 3 already") {
		t.Errorf("a text that is in force: found %q", said)
	}
	if said := l.apply("n2", cli.ExitOK, jointConfig+"# changed\n"); !strings.Contains(said, "It is revision 4,") {
		t.Errorf("found %q", said)
	}
	for _, n := range l.nodes {
		if strings.Contains(n.log.String(), "sesame") {
			t.Errorf("node %s has logged a secret", n.name)
		}
		if info, err := os.Stat(filepath.Join(n.dir, "cluster-config.json")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("found %v, %v", info, err)
		}
	}
}

// TestJointWithoutKeyring: a node that may own a volume, and lacks a file to reach its Ceph cluster,
// refuses the volume, and says so of one that is there.
func TestJointWithoutKeyring(t *testing.T) {
	l := newLabOf(t, ownConfig)
	keyring := filepath.Join(t.TempDir(), "keyring")
	text := strings.Replace(jointConfig, "user: lunar", "user: lunar, keyring-file: "+keyring, 1)
	for _, flags := range [][]string{nil, {"--dry-run"}} {
		if said := l.apply("n1", cli.ExitFailure, text, flags...); !strings.Contains(said, "node n3: volumes.db: node n3 could not open the volume: ceph.main: ") || !strings.Contains(said, keyring) {
			t.Errorf("%v: found %q, expected the file that is missing", flags, said)
		}
	}
	writeFile(t, keyring, "")
	l.apply("n1", cli.ExitOK, text)
	eventually.Holds(t, "the volume has an owner", func() bool { return l.owner("n2") == "n1" })
	if said := l.apply("n1", cli.ExitFailure, strings.Replace(text, keyring, keyring+".new", 1)); !strings.Contains(said, "it changes by two revisions") {
		t.Errorf("found %q, expected the way to change what needs a restart", said)
	}
	if err := os.Remove(keyring); err != nil {
		t.Fatal(err)
	}
	l.nodes["n3"].stop() // a node that is connected goes on without the file
	l.restart("n3")
	l.says("n2", true, "Node n3 cannot open volume db, and is not to own it: ceph.main: ")
	writeFile(t, keyring, "")
	l.says("n2", false, "Node n3 cannot open volume db")
}

// TestJointRefused: no node changes anything where one refuses, and all reasons are told.
func TestJointRefused(t *testing.T) {
	l := newLabOf(t, ownConfig)
	for name, c := range map[string]struct{ text, want string }{
		"on one node":     {strings.Replace(jointConfig, "volumes:\n", "volumes:\n", 1) + "  \"iqn.2026-11.test:n2\": {luns: {0: db}}\n", "node n2: "},
		"on all nodes":    {strings.Replace(jointConfig, "ceph: main", "ceph: other", 1), "node n3: revision 1 of the cluster's configuration:5:"},
		"a syntax error":  {"volumes: {", "found a syntax error"},
		"a node's own":    {jointConfig + "log: {level: debug}\n", "a section that is not the cluster's"},
		"of one server":   {"volumes: {ram: {type: ram, size: 1MiB}}\n", "a volume of one server is in that server's own file"},
		"cut off":         {"# volumes and targets\n", "found an empty file"},
		"much too long":   {jointConfig + "# " + strings.Repeat("x", 8<<20) + "\n", "too long"},
		"needs a restart": {jointConfig + "qos: {window: 8}\n", "node n1: qos.window: running with 32, the file has 8; it belongs into each node's own file"},
	} {
		if said := l.apply("n1", cli.ExitFailure, c.text); !strings.Contains(said, c.want) {
			t.Errorf("%s: found %q", name, said)
		}
	}
	if _, revision := l.stateOf("n2", "n2"); revision != "0" {
		t.Errorf("found revision %s", revision)
	}
	// Of two at once, no more than one gets the revision that both mean.
	var both sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i, node := range []string{"n1", "n2"} {
		both.Go(func() {
			file := filepath.Join(l.nodes[node].dir, "cluster.yaml")
			writeFile(t, file, fmt.Sprintf("%s0\n# %d\n%s", revisionMark, i, jointConfig))
			var out, messages strings.Builder
			if run(t.Context(), []string{"apply", "--cluster", file, "--state-dir", l.nodes[node].dir}, cli.Console{Out: &out, Err: &messages}) == cli.ExitOK {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	both.Wait()
	if won == 0 {
		t.Error("nobody got through")
	}
}

// TestJointWhileAway: a node that is away catches up before it has its place, also one that
// starts; a start without the cluster's state has what was in force there last.
func TestJointWhileAway(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig)
	eventually.Holds(t, "the volume has an owner", func() bool { return l.owner("n1") == "n1" })
	l.network.Cut("n3", true)
	l.nodes["n2"].stop()
	eventually.Holds(t, "one node is away, and one is heard over links alone", func() bool {
		two, _ := l.stateOf("n1", "n2")
		three, _ := l.stateOf("n1", "n3")
		return two == "away" && three == "cut"
	})
	l.apply("n1", cli.ExitOK, strings.Replace(jointConfig, "[n1, n2, n3]", "[n1, n2]", 1))
	l.network.Cut("n3", false)
	l.restart("n2")
	eventually.Holds(t, "they have it", func() bool {
		two, at := l.stateOf("n1", "n2")
		three, at3 := l.stateOf("n1", "n3")
		return two == "ok" && three == "ok" && at == "2" && at3 == "2"
	})
	l.nodes["n2"].stop()
	l.network.Cut("n2", true)
	l.restart("n2")
	if said := l.lunar("n2", cli.ExitOK, "config"); !strings.Contains(said, "rbd/db") {
		t.Errorf("found %q", said)
	}
	l.network.Cut("n2", false)
}

// TestJointAnotherImage: a volume gets another image while a node is away, by two revisions, as one
// is refused. That node cannot follow without a restart, and must not own the volume meanwhile:
// hosts would find another disk under the same identity.
func TestJointAnotherImage(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.ceph.Create("rbd/db2", 1<<20)
	l.apply("n1", cli.ExitOK, jointConfig)
	eventually.Holds(t, "the volume has an owner", func() bool { return l.owner("n1") == "n1" })
	l.network.Cut("n3", true)
	eventually.Holds(t, "a node is cut off from etcd", func() bool {
		state, _ := l.stateOf("n1", "n3")
		return state == "cut"
	})
	l.apply("n1", cli.ExitOK, "ceph: {main: {config: /etc/ceph/ceph.conf, user: lunar}}\n")
	other := strings.Replace(jointConfig, "image: rbd/db", "image: rbd/db2", 1)
	l.apply("n1", cli.ExitOK, other)
	eventually.Holds(t, "the new volume has an owner", func() bool { return l.owner("n1") != "" })
	l.network.Cut("n3", false)
	eventually.Holds(t, "the node is behind", func() bool {
		state, _ := l.stateOf("n1", "n3")
		return state == "behind"
	})
	keys := cluster.KeysOf("lab")
	at := l.record(keys).Epoch
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: keys.Move("db"), Value: ownership.Request{To: "n3"}.Encode()}}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "another node owns the volume than the one that was asked for", func() bool {
		r := l.record(keys)
		if r.Node == "n3" || r.Image != "rbd/db2" {
			t.Fatalf("found %+v", r)
		}
		return r.Epoch > at && r.Standing == ownership.Owned
	})
	l.nodes["n3"].stop()
	l.restart("n3")
	eventually.Holds(t, "the node has it after a restart", func() bool {
		state, revision := l.stateOf("n1", "n3")
		return state == "ok" && revision == "3"
	})
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n3")
}

// TestJointSecretsAtNodeBehind: what a text withholds is the secret of the newest revision, also
// where it is applied at a node at which an older one is in force.
func TestJointSecretsAtNodeBehind(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig)
	l.network.Cut("n3", true)
	eventually.Holds(t, "a node is cut off from etcd", func() bool {
		state, _ := l.stateOf("n1", "n3")
		return state == "cut"
	})
	const own = "iqn.2026-11.test:n3" // that node has it in its file
	l.apply("n1", cli.ExitOK, strings.Replace(jointConfig, "open sesame please", "another sesame please", 1)+"  \""+own+"\": {auth-group: hosts, luns: {0: db}}\n")
	l.network.Cut("n3", false)
	eventually.Holds(t, "the node is behind", func() bool {
		state, _ := l.stateOf("n1", "n3")
		return state == "behind"
	})
	shown := l.lunar("n1", cli.ExitOK, "cluster", "config", "show")
	l.apply("n3", cli.ExitOK, strings.Replace(shown, own, "iqn.2026-11.test:more", 1))
	l.login("n1", "alice", "another sesame please")
}

// TestJointRestored: after the state was restored from an older backup, a node that knows no more
// than that makes a revision which all follow.
func TestJointRestored(t *testing.T) {
	l := newLabOf(t, ownConfig)
	for i := range 3 {
		l.apply("n1", cli.ExitOK, fmt.Sprintf("%s# %d\n", jointConfig, i))
	}
	l.nodes["n3"].stop()
	for _, file := range []string{"cluster-config.json", ".kept/cluster-config.json"} {
		if err := os.Remove(filepath.Join(l.nodes["n3"].dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	keys := cluster.KeysOf("lab")
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: keys.Document(2), Delete: true}, {Key: keys.Document(3), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	l.restart("n3")
	eventually.Holds(t, "the node knows what the others have", func() bool {
		one, _ := l.stateOf("n3", "n1")
		_, three := l.stateOf("n3", "n3")
		return one != "away" && one != "" && three == "1"
	})
	if said := l.apply("n3", cli.ExitOK, jointConfig); !strings.Contains(said, "It is revision 4") || strings.Count(said, ", in force") != 3 {
		t.Errorf("found %q", said)
	}
}

// TestJointShownOfRestored: after the state was restored from an older backup, the text that a node
// shows is applied as it is where its revision is the newest that a node has, and on no older one.
func TestJointShownOfRestored(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig)
	older := l.lunar("n1", cli.ExitOK, "cluster", "config", "show")
	l.apply("n1", cli.ExitOK, jointConfig+"# another\n")
	shown := l.lunar("n1", cli.ExitOK, "cluster", "config", "show")
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: cluster.KeysOf("lab").Document(2), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	if said := l.apply("n2", cli.ExitFailure, older); !strings.Contains(said, "found revision 2 as the newest, expected 1") || !strings.Contains(said, "lunar cluster config show") {
		t.Errorf("found %q", said)
	}
	if said := l.apply("n1", cli.ExitFailure, strings.Replace(shown, "revision 2", "revision 9", 1)); !strings.Contains(said, "expected 9") || !strings.Contains(said, "take the line of its revision out") {
		t.Errorf("found %q", said)
	}
	if said := l.apply("n1", cli.ExitOK, shown); !strings.Contains(said, "It is revision 3") || strings.Count(said, ", in force") != 3 {
		t.Errorf("found %q", said)
	}
	var all []cluster.Change // of a state that is made anew
	for _, revision := range []int64{1, 3} {
		all = append(all, cluster.Change{Key: cluster.KeysOf("lab").Document(revision), Delete: true})
	}
	if _, err := l.network.State("test").Commit(t.Context(), nil, all); err != nil {
		t.Fatal(err)
	}
	if said := l.apply("n1", cli.ExitOK, l.lunar("n1", cli.ExitOK, "cluster", "config", "show")); !strings.Contains(said, "It is revision 4") {
		t.Errorf("found %q", said)
	}
	l.login("n2", "alice", "open sesame please")
}

// TestUnknownChange: it is not told that nothing was changed where that is not known.
func TestUnknownChange(t *testing.T) {
	if said := ofState(fmt.Errorf("etcd: %w", cluster.ErrUnknown)).Error(); !strings.Contains(said, "not known whether") {
		t.Errorf("found %q", said)
	}
	if said := ofState(fmt.Errorf("etcd: %w", cluster.ErrNoQuorum)).Error(); !strings.Contains(said, jointRefused) {
		t.Errorf("found %q", said)
	}
}

// TestNotPlaced: a node that does not know yet whom it would have to ask changes nothing.
func TestNotPlaced(t *testing.T) {
	s := &source{daemon: &daemon{member: &membership{conf: &conf.Cluster{Node: "n1"}}}}
	if err := s.placed(); err == nil || !strings.Contains(err.Error(), "this node has no place in its cluster: it has not joined yet") {
		t.Errorf("found %v", err)
	}
}

// record is the owner's record of the volume.
func (l *lab) record(keys cluster.Keys) (r ownership.Record) {
	l.t.Helper()
	items, _ := l.network.Get(keys.Owner("db"))
	if len(items) == 1 {
		var err error
		if r, err = ownership.Parse(items[0].Value); err != nil {
			l.t.Fatal(err)
		}
	}
	return r
}

// TestJointBroken: a node that cannot go by a revision keeps the one of before and says so, and
// goes by the next.
func TestJointBroken(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig)
	keys := cluster.KeysOf("lab")
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: keys.Document(2), Value: []byte(`{"version": 9}`)}}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "all nodes say so", func() bool {
		one, at := l.stateOf("n2", "n1")
		three, _ := l.stateOf("n2", "n3")
		return one == "behind" && three == "behind" && at == "1"
	})
	if said := l.lunar("n2", cli.ExitOK, "status"); !strings.Contains(said, "cannot be read") {
		t.Errorf("found %q", said)
	}
	l.nodes["n3"].stop()
	l.restart("n3")
	if said := l.lunar("n3", cli.ExitOK, "config"); !strings.Contains(said, "rbd/db") {
		t.Errorf("found %q", said)
	}
	l.apply("n1", cli.ExitOK, jointConfig+"qos: {overcommit: true}\n")
	eventually.Holds(t, "all nodes go by the next", func() bool {
		one, _ := l.stateOf("n2", "n1")
		three, at := l.stateOf("n2", "n3")
		return one == "ok" && three == "ok" && at == "3"
	})
}

// TestJointFails: a node on which a revision fails keeps the one of before while the others go by
// it, and tries again when its own file has changed.
func TestJointFails(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig)
	own := filepath.Join(l.nodes["n2"].dir, "tgtd.yaml")
	fits, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	d := &revisions.Document{Revision: 2, ID: "two", At: time.Now(), By: "a test", Node: "n1", Lunar: "1", What: "apply", Text: []byte(jointConfig + "  \"iqn.2026-11.test:n2\": {luns: {0: db}}\n")}
	value, err := d.Encode() // which nobody has judged
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.network.State("test").Commit(t.Context(), nil, []cluster.Change{{Key: cluster.KeysOf("lab").Document(2), Value: value}}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "one node is behind", func() bool {
		one, at := l.stateOf("n1", "n1")
		two, at2 := l.stateOf("n1", "n2")
		return one == "ok" && at == "2" && two == "behind" && at2 == "1"
	})
	for node, want := range map[string]string{"n1": "node n2 is behind", "n2": "degraded: node n2 does not have the newest configuration of cluster lab"} {
		if said := l.lunar(node, cli.ExitOK, "status"); !strings.Contains(said, want) || !strings.Contains(l.lunar(node, cli.ExitOK, "cluster", "status"), "Node n2 does not have the newest configuration: revision 2 of the cluster's configuration was not applied, and nothing was changed; ") {
			t.Errorf("node %s: found %q", node, said)
		}
	}
	writeFile(t, own, strings.Replace(string(fits), `"iqn.2026-11.test:n2"`, `"iqn.2026-11.test:other"`, 1))
	l.lunar("n2", cli.ExitOK, "apply", "--yes", own)
	eventually.Holds(t, "it goes by the revision", func() bool {
		two, at := l.stateOf("n1", "n2")
		return two == "ok" && at == "2"
	})
}

// TestJointTooOld: where a living node is of a version that knows no revisions, nothing changes, and
// nobody waits for it.
func TestJointTooOld(t *testing.T) {
	l := newLabOf(t, ownConfig)
	state, keys := l.network.State("test"), cluster.KeysOf("lab")
	about := (&peer{Lunar: "0.1", Groups: []peerGroup{}}).encode()
	if _, err := state.Commit(t.Context(), nil, []cluster.Change{
		{Key: keys.Node("old"), Value: ownership.Node{Incarnation: "x", About: about}.Encode()}, {Key: keys.Pulse("old"), Value: []byte("x")},
	}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the node is seen", func() bool { s, _ := l.stateOf("n1", "old"); return s == "behind" || s == "ok" })
	began := time.Now()
	if said := l.apply("n1", cli.ExitFailure, jointConfig); !strings.Contains(said, "node old: found Lunar 0.1, which knows no configuration of the cluster: upgrade it first") {
		t.Errorf("found %q after %v", said, time.Since(began))
	}
	if items, _, err := state.Get(t.Context(), keys.Config()); err != nil || len(items) != 0 {
		t.Errorf("found %v, %v", items, err)
	}
}

// TestJointSaved: a rule of the cluster's configuration that was changed on one node is not saved to
// that one's file, and what is exported has the cluster's objects.
func TestJointSaved(t *testing.T) {
	l := newLabOf(t, ownConfig)
	l.apply("n1", cli.ExitOK, jointConfig+"qos: {rules: [{name: gold, initiators: [\"*\"], limit: 1000}]}\n")
	before, err := os.ReadFile(filepath.Join(l.nodes["n1"].dir, "tgtd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	l.lunar("n1", cli.ExitOK, "qos", "set", "gold", "--limit", "500")
	if said := l.lunar("n1", cli.ExitFailure, "save"); !strings.Contains(said, "qos.rules.gold") || !strings.Contains(said, "revision 1 of the cluster's configuration") || !strings.Contains(said, "lunar apply --cluster") {
		t.Errorf("found %q", said)
	}
	if after, err := os.ReadFile(filepath.Join(l.nodes["n1"].dir, "tgtd.yaml")); err != nil || string(after) != string(before) {
		t.Errorf("found %q, %v", after, err)
	}
	l.lunar("n1", cli.ExitOK, "qos", "set", "mine", "--initiators", "iqn.2026-11.test:m*", "--limit", "100")
	l.apply("n1", cli.ExitOK, jointConfig+"qos: {rules: [{name: gold, initiators: [\"*\"], limit: 500}]}\n")
	if said := l.lunar("n1", cli.ExitOK, "save"); !strings.Contains(said, "mine") || strings.Contains(said, "gold") {
		t.Errorf("found %q", said)
	}
	if said := l.lunar("n1", cli.ExitOK, "export", "volumes.db", "qos.rules.gold", "targets.iqn.2026-11.test:n1"); !strings.Contains(said, "rbd/db") || !strings.Contains(said, "gold") || !strings.Contains(said, "scratch") {
		t.Errorf("found %q", said)
	}
	if said := l.lunar("n1", cli.ExitOK, "export"); !strings.HasPrefix(said, "# With revision 2") || !strings.Contains(said, "rbd/db") || strings.Contains(said, "sesame") {
		t.Errorf("found %q", said)
	}
}

// login logs in at a node as a user.
func (l *lab) login(node, user, secret string) {
	l.t.Helper()
	dial(l.t, l.nodes[node].portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: &initiator.CHAP{User: user, Secret: []byte(secret)}})
}
