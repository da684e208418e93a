package daemon

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// newForgetful is a lab whose state forgets volumes at once, with a configuration in force of which
// one volume was moved to n2, and that volume's record.
func newForgetful(t *testing.T) (l *lab, with string, before ownership.Record) {
	t.Helper()
	was := forgetTime
	forgetTime = 0
	t.Cleanup(func() { forgetTime = was })
	l = newLabOf(t, ownConfig)
	with = jointConfig + "# with it\n"
	l.apply("n1", cli.ExitOK, with)
	eventually.Holds(t, "the volume has an owner", func() bool { return l.owner("n1") == "n1" })
	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n2")
	return l, with, l.record(cluster.KeysOf("lab"))
}

// forgets puts the configuration into force without its volumes, and waits until the state has
// forgotten them.
func (l *lab) forgets(with string) {
	l.t.Helper()
	l.apply("n1", cli.ExitOK, with[:strings.Index(with, "volumes:")]+"targets: {}\n", "--yes")
	eventually.Holds(l.t, "the state has forgotten the volume", func() bool {
		items, _ := l.network.Get(cluster.KeysOf("lab").Volumes())
		return len(items) == 0
	})
}

// TestForgotten: what the state has of a volume goes with it, also while a node is away, and the
// volume is served again when it comes again, in the image that it had.
func TestForgotten(t *testing.T) {
	l, with, before := newForgetful(t)
	l.nodes["n3"].stop()
	l.forgets(with)
	l.apply("n2", cli.ExitOK, with)
	eventually.Holds(t, "the volume has an owner again", func() bool { return l.owner("n1") == "n1" && l.owner("n2") == "n1" })
	if now := l.record(cluster.KeysOf("lab")); now.Epoch <= before.Epoch {
		t.Errorf("found epoch %d after %d", now.Epoch, before.Epoch)
	}
	l.login("n2", "alice", "open sesame please")
	l.restart("n3")
	eventually.Holds(t, "the node that was away knows the owner", func() bool { return l.owner("n3") == "n1" })
}

// TestForgottenOfDead: a volume whose owner dies before it can give the volume away goes from the
// state, too. If it comes again, its image is taken from that owner, also if that lives still.
func TestForgottenOfDead(t *testing.T) {
	l, with, before := newForgetful(t)
	l.network.Cut("n2", true)
	l.wires.CutAll("n2", true)
	l.forgets(with)
	l.apply("n1", cli.ExitOK, with)
	owner := ""
	eventually.Holds(t, "the volume has an owner again", func() bool {
		owner = l.owner("n1")
		return owner != "" && owner == l.owner("n3")
	})
	if now := l.record(cluster.KeysOf("lab")); now.Epoch <= before.Epoch {
		t.Errorf("found %+v after epoch %d", now, before.Epoch)
	}
	l.network.Cut("n2", false)
	l.wires.CutAll("n2", false)
	eventually.Holds(t, "who had it knows the owner", func() bool { return l.owner("n2") == owner })
}

// TestGone: a volume is gone when no node that is heard has it, and all go by one revision.
func TestGone(t *testing.T) {
	free := node.VolumeStatus{Owner: ownership.Record{Node: "n1", Standing: ownership.Free, Revision: 3}}
	at := func(revision int64, owners ...string) peer {
		p := peer{Forgets: true, Config: &peerRevision{Revision: revision}, Owners: map[string][]string{}}
		for _, volume := range owners {
			p.Owners[volume] = []string{"n1"}
		}
		return p
	}
	status := func() *node.Status {
		return &node.Status{Node: "n1", Nodes: map[string]node.NodeStatus{"n1": {}, "n2": {}}, Volumes: map[string]node.VolumeStatus{"db": free, "log": free}, Linked: map[string]ownership.Linked{}}
	}
	for name, c := range map[string]struct {
		change func(*node.Status, peers)
		want   []string
		known  bool
	}{
		"both gone":                       {func(*node.Status, peers) {}, []string{"db", "log"}, true},
		"one is in the other node's file": {func(_ *node.Status, p peers) { p["n2"] = at(4, "db") }, []string{"log"}, true},
		"a node is behind":                {func(_ *node.Status, p peers) { p["n2"] = at(3) }, nil, false},
		"a node is of an earlier version": {func(_ *node.Status, p peers) { p["n2"] = peer{Config: &peerRevision{Revision: 4}} }, nil, false},
		"nothing is known of a node":      {func(_ *node.Status, p peers) { delete(p, "n2") }, nil, false},
		"a node is cut off from etcd":     {func(s *node.Status, _ peers) { s.Linked["n3"] = ownership.Linked{Until: time.Now().Add(time.Hour)} }, nil, false},
		"one of a node's own": {func(s *node.Status, _ peers) {
			s.Volumes["log"] = node.VolumeStatus{Owner: ownership.Record{Standing: ownership.Free}}
		}, []string{"db"}, true},
		"one is being closed here": {func(s *node.Status, _ peers) {
			s.Volumes["db"] = node.VolumeStatus{Owner: free.Owner, State: ownership.Draining}
		}, []string{"log"}, true},
	} {
		s, p := status(), peers{"n1": at(4), "n2": at(4)}
		c.change(s, p)
		if got, known := gone(s, p, 4); !reflect.DeepEqual(got, c.want) || known != c.known {
			t.Errorf("%s: found %v, %v", name, got, known)
		}
	}
	var f forgetting
	now := time.Unix(1e9, 0)
	for i, c := range []struct{ gone, want []string }{{[]string{"a"}, nil}, {[]string{"a", "b"}, []string{"a"}}, {[]string{"b"}, []string{"b"}}, {[]string{"a"}, nil}} {
		if got := f.due(now.Add(time.Duration(i)*forgetTime), c.gone); !reflect.DeepEqual(got, c.want) {
			t.Errorf("round %d: found %v", i, got)
		}
	}
}
