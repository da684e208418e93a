package ownership

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
)

// living is a store in which node n2 lives, and what puts a value there.
func living(t *testing.T, keys cluster.Keys) (store *mem.Store, put func(key string, value []byte)) {
	t.Helper()
	store = mem.NewStore()
	put = func(key string, value []byte) {
		t.Helper()
		if _, err := store.Commit(nil, []cluster.Change{{Key: key, Value: value}}); err != nil {
			t.Fatal(err)
		}
	}
	put(keys.Node("n2"), Node{Incarnation: "b"}.Encode())
	put(keys.Pulse("n2"), []byte("b"))
	return store, put
}

// An owner with a cache whose lease is over may come back, and trust its cache again, while
// somebody who has not heard of that claims its volume: the claim has to fail.
func TestClaimDemandsThatTheOwnerIsGone(t *testing.T) {
	keys, now := cluster.KeysOf("prod"), time.Unix(1e9, 0)
	store, put := living(t, keys)
	put(keys.Owner("v"), Record{Node: "n1", Incarnation: "a", Epoch: 3, Standing: Owned, Cached: true, Instances: []string{"x"}}.Encode())
	o := NewObserver(keys, "n2")
	m := New(Config{Keys: keys, Volume: "v", Node: "n2", Incarnation: "b", Owners: []string{"n2"}})
	if err := o.Add("v", m); err != nil {
		t.Fatal(err)
	}
	items, at := store.Get(keys.All())
	if err := o.Begin(items, at, now); err != nil {
		t.Fatal(err)
	}
	o.View.Current = true
	step := func(want Kind) Action {
		todo, _ := m.Step(&o.View, now)
		for _, a := range todo {
			if a.Kind == want {
				return a
			}
		}
		t.Fatalf("found %+v in state %s, expected an action of kind %d", todo, m.State(), want)
		return Action{}
	}
	step(Connect)
	m.Ended(Outcome{Address: "y"}, now)
	claim := step(Commit)
	if r := claim.Record; r.Node != "n2" || r.Epoch != 4 || r.Standing != Claiming || len(r.Instances) != 2 {
		t.Errorf("found %+v, expected a claim with both instances", r)
	}
	put(keys.Node("n1"), Node{Incarnation: "a"}.Encode())
	if _, err := store.Commit(claim.Conditions, claim.Changes); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("found error %v, expected a conflict", err)
	}
}

// Values of later versions are refused, and what is written is read.
func TestRecords(t *testing.T) {
	r := Record{Version: version, Node: "n1", Incarnation: "a", Epoch: 7, Standing: Free, Instances: []string{"x"}, Next: "n2", Failed: []string{"b"}, Size: 1 << 30, BlockSize: 512, Cached: true}
	if got, err := Parse(r.Encode()); err != nil || string(got.Encode()) != string(r.Encode()) {
		t.Errorf("found %+v, %v", got, err)
	}
	for _, text := range []string{``, `{}`, `{"version":2,"standing":"free"}`, `{"version":1,"standing":"lost"}`, `{"version":1,"epoch":-1}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q was taken as an owner's record", text)
		}
		if _, err := ParseNode([]byte(text)); err == nil {
			t.Errorf("%q was taken as a node's record", text)
		}
	}
	if _, err := ParseRequest([]byte(`{"version":2,"to":"n1"}`)); err == nil {
		t.Error("a request of a later version was read")
	}
}

// A volume that cannot be opened, by the only node that there is, is tried again by the same
// instance: nothing is open by it, and to fence it would take the node's other volumes from
// them. Nor does the record grow with each attempt.
func TestOwnInstanceIsNotFenced(t *testing.T) {
	store, keys, now := mem.NewStore(), cluster.KeysOf("prod"), time.Unix(1e9, 0)
	m := New(Config{Keys: keys, Volume: "v", Node: "n1", Incarnation: "a", Owners: []string{"n1"}, Retry: time.Second})
	m.Owned(Record{}, 0)
	v := &View{Nodes: map[string]Peer{"n1": {Incarnation: "a", Heard: true}}, Current: true}
	attempts := 0
	for range 50 {
		now = now.Add(time.Second)
		todo, _ := m.Step(v, now)
		for _, a := range todo {
			switch a.Kind {
			case Connect:
				if len(a.Instances) != 0 {
					t.Fatalf("after %d attempts: asked for another instance than %v", attempts, a.Instances)
				}
				m.Ended(Outcome{Address: "x"}, now)
			case Commit:
				at, err := store.Commit(a.Conditions, a.Changes)
				if m.Ended(Outcome{Revision: at, Err: err}, now); err != nil {
					t.Fatal(err)
				}
				m.Owned(a.Record, at)
				if len(a.Record.Instances) != 1 {
					t.Fatalf("after %d attempts: found instances %v", attempts, a.Record.Instances)
				}
			case Fence:
				t.Fatalf("after %d attempts: fenced %v", attempts, a.Instances)
			case Open:
				attempts++
				m.Ended(Outcome{Err: errors.New("found no such image")}, now)
			}
		}
	}
	if attempts < 10 {
		t.Errorf("found %d attempts", attempts)
	}
}

// A node at which a volume's name is that of another image neither presents it nor takes it over,
// unless the volume was made anew since it was open: hosts would find another disk under the same
// identity.
func TestAnotherImage(t *testing.T) {
	for name, c := range map[string]struct {
		image         string
		revision      int64
		stands, takes bool
	}{
		"the same":             {"rbd/new", 5, true, true},
		"the same, since long": {"rbd/new", 1, true, true},
		"of an older revision": {"rbd/old", 1, false, false},
		"of the same revision": {"rbd/old", 3, false, false},
		"made anew":            {"rbd/newer", 5, false, true},
	} {
		now := time.Unix(1e9, 0)
		m := New(Config{
			Keys: cluster.KeysOf("prod"), Volume: "v", Node: "n2", Incarnation: "b", Owners: []string{"n1", "n2"}, Retry: time.Second,
			Image: c.image, Revision: c.revision,
		})
		m.Owned(Record{Node: "n1", Incarnation: "a", Epoch: 1, Standing: Owned, Image: "rbd/new", Revision: 3}, 7)
		v := &View{Nodes: map[string]Peer{"n1": {Incarnation: "a", Heard: true}, "n2": {Incarnation: "b", Heard: true}}, Current: true}
		stands, takes := false, false
		for i := range 20 {
			todo, _ := m.Step(v, now)
			for _, a := range todo {
				switch a.Kind {
				case Connect:
					m.Ended(Outcome{Address: "x"}, now)
				case Standby:
					stands = true
				case Commit:
					takes = true
				}
			}
			if now = now.Add(time.Second); i == 5 {
				delete(v.Nodes, "n1")
			}
		}
		if stands != c.stands || takes != c.takes {
			t.Errorf("%s: found standby %v and a claim %v", name, stands, takes)
		}
	}
}

// A node that has a volume with another block size than its owner neither presents it nor takes
// it over: hosts would have two disks for one, and write to the wrong places.
func TestAnotherBlockSize(t *testing.T) {
	for size, like := range map[int]bool{512: true, 4096: false} {
		now := time.Unix(1e9, 0)
		m := New(Config{Keys: cluster.KeysOf("prod"), Volume: "v", Node: "n2", Incarnation: "b", Owners: []string{"n1", "n2"}, BlockSize: size, Retry: time.Second})
		m.Owned(Record{Node: "n1", Incarnation: "a", Epoch: 1, Standing: Owned, BlockSize: 512}, 7)
		v := &View{Nodes: map[string]Peer{"n1": {Incarnation: "a", Heard: true}, "n2": {Incarnation: "b", Heard: true}}, Current: true}
		did := map[Kind]bool{}
		for range 20 {
			todo, _ := m.Step(v, now)
			for _, a := range todo {
				if did[a.Kind] = true; a.Kind == Connect {
					m.Ended(Outcome{Address: "x"}, now)
				}
			}
			if now = now.Add(time.Second); len(did) >= 2 {
				delete(v.Nodes, "n1")
			}
		}
		if did[Standby] != like || did[Commit] != like || !did[Hold] {
			t.Errorf("block size %d: found actions %v", size, did)
		}
	}
}

// A node that says that it could not open a volume does not claim it, nor is it given it; once it
// can, all is as before.
func TestUnable(t *testing.T) {
	now := time.Unix(1e9, 0)
	owners := []string{"n1", "n2", "n3"}
	view := func(unable string) *View {
		return &View{Current: true, Until: now.Add(time.Hour), Nodes: map[string]Peer{
			"n2": {Incarnation: "b", Heard: true, Unable: map[string]string{"v": unable}},
			"n3": {Incarnation: "c", Heard: true},
		}}
	}
	follows := func(node, incarnation, unable string) State {
		m := New(Config{Keys: cluster.KeysOf("prod"), Volume: "v", Node: node, Incarnation: incarnation, Owners: owners, Patience: time.Minute})
		m.Owned(Record{Node: "n1", Incarnation: "a", Epoch: 3, Standing: Owned, Instances: []string{"x"}}, 7)
		m.address = node
		m.Step(view(unable), now)
		m.Step(view(unable), now)
		if m.busy == Commit {
			return Owner // it claims the volume
		}
		return Follower
	}
	for _, c := range []struct{ node, incarnation, unable string }{{"n3", "c", "no key"}, {"n2", "b", ""}} {
		if got := follows(c.node, c.incarnation, c.unable); got != Owner {
			t.Errorf("%+v: it does not claim the volume", c)
		}
	}
	if got := follows("n2", "b", "no key"); got == Owner {
		t.Error("a node that cannot open the volume claims it")
	}
	m := New(Config{Keys: cluster.KeysOf("prod"), Volume: "v", Node: "n3", Incarnation: "c", Owners: owners, Failback: time.Second})
	m.Owned(Record{Node: "n3", Incarnation: "c", Epoch: 3, Standing: Owned}, 7)
	m.disk, m.epoch = &Disk{}, 3
	m.Asked(&Request{To: "n2"}, 8)
	if got := m.heir(view("no key"), now); got != "" {
		t.Errorf("found %q as the next owner", got)
	}
	if got := m.heir(view(""), now); got != "n2" {
		t.Errorf("found %q as the next owner of a volume that it can open", got)
	}
}

// TestForget: what is known of records that were removed is what later ones begin above. Who knows a
// new volume by an older configuration than those does not claim it, nor does anybody if it cannot
// be read. A record of somebody who serves the volume, or is about to give it away, stays; what that of
// somebody dead names is for the next one to fence.
func TestForget(t *testing.T) {
	keys, now := cluster.KeysOf("prod"), time.Unix(1e9, 0)
	store, put := living(t, keys)
	for volume, r := range map[string]Record{
		"gone": {Standing: Free, Epoch: 7, Revision: 3}, "here": {Standing: Free, Epoch: 90, Revision: 3}, "fresh": {Standing: Free, Epoch: 91, Revision: 5},
		"own": {Standing: Free, Epoch: 92}, "open": {Standing: Free, Epoch: 5, Revision: 3, Image: "open", Instances: []string{"x"}},
		"dead":    {Standing: Owned, Node: "n1", Incarnation: "a", Epoch: 6, Revision: 3, Image: "dead", Instances: []string{"w", "z"}},
		"gave up": {Standing: Claiming, Node: "n2", Incarnation: "b", Epoch: 4, Revision: 3},
		"heard":   {Standing: Owned, Node: "n3", Incarnation: "c", Epoch: 94, Revision: 3}, "lives": {Standing: Owned, Node: "n4", Incarnation: "d", Epoch: 95, Revision: 3},
	} {
		put(keys.Owner(volume), r.Encode())
	}
	put(keys.Heritage("gone"), []byte("{}"))
	put(keys.Node("n4"), Node{Incarnation: "d"}.Encode())
	observer := func() *Observer {
		o := NewObserver(keys, "n2")
		items, at := store.Get(keys.All())
		if err := o.Begin(items, at, now); err != nil {
			t.Log(err)
		}
		o.View.Current = true
		o.View.Linked = map[string]Linked{"n3": {Incarnation: "c", Until: now.Add(time.Second)}, "n1": {Incarnation: "a", Until: now}}
		return o
	}
	late := observer()
	forgets := observer()
	if err := forgets.Add("here", New(Config{Volume: "here"})); err != nil {
		t.Fatal(err)
	}
	all := []string{"gone", "here", "fresh", "own", "open", "dead", "gave up", "heard", "lives", "none"}
	_, conditions, changes := forgets.Forget(all, 5, now)
	put(keys.Node("n1"), Node{Incarnation: "a"}.Encode())
	if _, err := store.Commit(conditions, changes); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("a node that was dead has come back: found %v, expected a conflict", err)
	}
	if _, err := store.Commit(nil, []cluster.Change{{Key: keys.Node("n1"), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Commit(conditions, changes); err != nil {
		t.Fatal(err)
	}
	if items, _ := store.Get(keys.Volume("gone")); len(items) > 0 || !slices.Equal(slices.Sorted(maps.Keys(observer().Owners())), []string{"fresh", "heard", "here", "lives", "own"}) {
		t.Errorf("found %v, and records of %v", items, observer().Owners())
	}
	claim := func(o *Observer, revision int64) *Action {
		m := New(Config{Keys: keys, Volume: "new", Node: "n2", Incarnation: "b", Owners: []string{"n2"}, Image: "dead", Revision: revision})
		if err := o.Add("new", m); err != nil {
			t.Fatal(err)
		}
		m.address = "y"
		todo, _ := m.Step(&o.View, now)
		for _, a := range todo {
			if a.Kind == Commit {
				return &a
			}
		}
		return nil
	}
	if a := claim(observer(), 4); a != nil {
		t.Errorf("a node of an older revision claims a new volume: %+v", a)
	}
	if a := claim(late, 4); a == nil {
		t.Error("who has not heard of it does not claim a new volume")
	} else if _, err := store.Commit(a.Conditions, a.Changes); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("the claim of who has not heard of it: found %v, expected a conflict", err)
	}
	if a := claim(observer(), 5); a == nil || a.Record.Epoch != 8 || !slices.Equal(a.Record.Instances, []string{"w", "z", "y"}) {
		t.Errorf("found %+v, expected a claim for epoch 8 that fences what is left of the image", a)
	} else if _, err := store.Commit(a.Conditions, a.Changes); err != nil {
		t.Error(err)
	}
	if f := observer().View.Forgotten; f.of("dead") != nil || !slices.Equal(f.of("open"), []string{"x"}) || f.Epoch != 7 {
		t.Errorf("found %+v", f)
	}
	if _, err := store.Commit(nil, []cluster.Change{{Key: keys.Owner("new"), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	put(keys.Forgotten(), []byte("{}"))
	if a := claim(observer(), 100); a != nil {
		t.Errorf("found a claim %+v where it cannot be read what was removed", a)
	}
}

// TestYieldUnknown: a node that has given a volume away without closing it, and does not know whether
// that is stored, serves nothing of it until it does, whatever else fails, and asks again. Where
// nothing is stored it goes on.
func TestYieldUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		first error
		holds bool
	}{"unknown": {cluster.ErrUnknown, true}, "stored, and not seen": {nil, true}, "not stored": {cluster.ErrNoQuorum, false}} {
		now := time.Unix(1e9, 0)
		m := New(Config{Keys: cluster.KeysOf("prod"), Volume: "v", Node: "n1", Incarnation: "a", Owners: []string{"n1", "n2"}, Cached: true, Retry: time.Second, Mute: time.Second})
		m.Owned(Record{Node: "n1", Incarnation: "a", Epoch: 3, Standing: Owned, Cached: true, Instances: []string{"x"}}, 7)
		m.disk, m.epoch, m.address = &Disk{Address: "x"}, 3, "x"
		v := &View{Current: true, Until: now.Add(time.Hour), Nodes: map[string]Peer{"n1": {Incarnation: "a", Heard: true}, "n2": {Incarnation: "b", Heard: true}}}
		v.Linked = map[string]Linked{"n2": {Incarnation: "b", Until: now.Add(time.Hour), Stores: []string{"ceph"}}}
		m.Silent("ceph", now.Add(-time.Minute))
		gives := func() bool {
			now = now.Add(2 * time.Second)
			todo, _ := m.Step(v, now)
			for _, a := range todo {
				if a.Kind == Commit {
					return true
				}
			}
			return false
		}
		if !gives() {
			t.Fatalf("%s: it does not give the volume away", name)
		}
		m.Ended(Outcome{Err: c.first, Revision: 9}, now)
		m.Silent("ceph", time.Time{}) // which answers again
		if again := gives(); again != c.holds {
			t.Errorf("%s: it asks again: %v", name, again)
		} else if again {
			m.Ended(Outcome{Err: cluster.ErrNoQuorum}, now)
		}
		if m.Step(v, now); (m.access.kind == Serve) == c.holds || m.until.IsZero() != c.holds {
			t.Errorf("%s: found access %d, cached reads until %v", name, m.access.kind, m.until)
		}
		m.Owned(m.record, 10) // it has the volume still
		if m.Step(v, now.Add(time.Minute)); m.access.kind != Serve {
			t.Errorf("%s: found access %d of who has the volume still", name, m.access.kind)
		}
	}
}

// TestUnknownStore: a node that says nothing of a store, since it has the volume since a moment ago,
// keeps its place before others. One that says that the store does not answer it comes after them.
func TestUnknownStore(t *testing.T) {
	for name, c := range map[string]struct {
		better Linked
		claims bool // at once
	}{"unknown": {Linked{Stores: []string{}}, false}, "answers": {Linked{Stores: []string{"ceph"}}, false}, "silent": {Linked{Silent: []string{"ceph"}}, true}} {
		now := time.Unix(1e9, 0)
		m := New(Config{Keys: cluster.KeysOf("prod"), Volume: "v", Node: "n2", Incarnation: "b", Owners: []string{"n1", "n2"}, Stagger: time.Second})
		m.Owned(Record{Node: "n3", Incarnation: "c", Epoch: 3, Standing: Owned, Instances: []string{"x"}}, 7)
		m.Silent("ceph", time.Time{})
		m.address = "y"
		c.better.Incarnation, c.better.Until = "a", now.Add(time.Hour)
		v := &View{Current: true, Until: now.Add(time.Hour), Linked: map[string]Linked{"n1": c.better}, Nodes: map[string]Peer{"n1": {Incarnation: "a", Heard: true}, "n2": {Incarnation: "b", Heard: true}}}
		todo, next := m.Step(v, now)
		claims := slices.ContainsFunc(todo, func(a Action) bool { return a.Kind == Commit })
		if claims != c.claims || !claims && !next.Equal(now.Add(time.Second)) {
			t.Errorf("%s: it claims the volume: %v, and asks again at %v", name, claims, next)
		}
	}
}
