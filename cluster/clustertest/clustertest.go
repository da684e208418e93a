// Package clustertest has the tests that every cluster.State must pass.
package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/internal/eventually"
)

// Subject is a cluster's state, and what can be done to it.
type Subject struct {
	// Open returns a node's way to the state, which all of a Subject's share.
	Open func(testing.TB) cluster.State
	// Compact forgets all revisions up to one.
	Compact func(testing.TB, cluster.Revision)
	// Quorum takes the quorum away or gives it back; nil: neither can be done.
	Quorum func(t testing.TB, there bool)
	// Shortest is a lease that ends soon.
	Shortest time.Duration
	// Within runs a test: in virtual time, or with a state of its own; nil: as it is.
	Within func(t *testing.T, test func(*testing.T))
}

// Run runs all tests. Each uses keys of its own.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"Get", testGet}, {"Conflict", testConflict}, {"Together", testTogether}, {"Counters", testCounters},
		{"Watch", testWatch}, {"WatchFrom", testWatchFrom}, {"Compacted", testCompacted},
		{"LeaseEnds", testLeaseEnds}, {"Revoke", testRevoke}, {"Kept", testKept}, {"NoLease", testNoLease},
		{"Closed", testClosed}, {"NoQuorum", testNoQuorum},
	} {
		t.Run(test.name, func(t *testing.T) {
			if s.Within == nil {
				test.run(t, s)
				return
			}
			s.Within(t, func(t *testing.T) { test.run(t, s) })
		})
	}
}

// node is a State with a prefix for one test.
type node struct {
	cluster.State
	t      *testing.T
	prefix string
}

func (s Subject) node(t *testing.T) node {
	state := s.Open(t)
	t.Cleanup(func() { _ = state.Close() })
	return node{state, t, "/test/" + t.Name() + "/"}
}

func (n node) key(name string) string { return n.prefix + name }

func (n node) commit(conditions []cluster.Condition, changes ...cluster.Change) cluster.Revision {
	n.t.Helper()
	at, err := n.Commit(n.t.Context(), conditions, changes)
	if err != nil {
		n.t.Fatal(err)
	}
	return at
}

func (n node) put(name, value string) cluster.Revision {
	n.t.Helper()
	return n.commit(nil, cluster.Change{Key: n.key(name), Value: []byte(value)})
}

func (n node) get(prefix string) ([]cluster.Item, cluster.Revision) {
	n.t.Helper()
	items, at, err := n.Get(n.t.Context(), prefix)
	if err != nil {
		n.t.Fatal(err)
	}
	return items, at
}

// refused commits what must fail with an error.
func (n node) refused(want error, conditions []cluster.Condition, changes ...cluster.Change) {
	n.t.Helper()
	if at, err := n.Commit(n.t.Context(), conditions, changes); !errors.Is(err, want) {
		n.t.Fatalf("found revision %d, error %v, expected %v", at, err, want)
	}
}

// texts are items as "name=value", without the prefix.
func (n node) texts(items []cluster.Item) (all []string) {
	for _, i := range items {
		all = append(all, strings.TrimPrefix(i.Key, n.prefix)+"="+string(i.Value))
	}
	return all
}

func (n node) expect(found []string, want ...string) {
	n.t.Helper()
	if !slices.Equal(found, want) {
		n.t.Fatalf("found %q, expected %q", found, want)
	}
}

func testGet(t *testing.T, s Subject) {
	n := s.node(t)
	_, before := n.get(n.prefix)
	b, a := n.put("b", "2"), n.put("a/1", "1")
	items, at := n.get(n.prefix)
	n.expect(n.texts(items), "a/1=1", "b=2")
	if !(before < b && b < a && a == at && items[0].Modified == a && items[1].Modified == b) {
		t.Fatalf("found revisions %d < %d < %d = %d of %+v", before, b, a, at, items)
	}
	items, _ = n.get(n.key("a/"))
	n.expect(n.texts(items), "a/1=1")
	items, _ = n.get(n.key("c"))
	n.expect(n.texts(items))
	seen := n.Watch(t.Context(), n.key("large"), at)
	large := bytes.Repeat([]byte{0, 1, 0xfe, '"'}, 350<<10)
	n.commit(nil, cluster.Change{Key: n.key("large"), Value: large})
	if items, _ = n.get(n.key("large")); !bytes.Equal(items[0].Value, large) {
		t.Fatal("a large value differs")
	}
	if b := <-seen; len(b.Events) != 1 || !bytes.Equal(b.Events[0].Value, large) {
		t.Fatalf("a large value differs in a watch: found %d events, %v", len(b.Events), b.Err)
	}
	n.refused(cluster.ErrTooLarge, nil, cluster.Change{Key: n.key("more"), Value: make([]byte, cluster.MostBytes)})
	n.refused(cluster.ErrTooLarge, nil, make([]cluster.Change, cluster.MostChanges+1)...)
}

func testConflict(t *testing.T, s Subject) {
	n := s.node(t)
	absent := []cluster.Condition{{Key: n.key("k")}}
	put := func(v string) cluster.Change { return cluster.Change{Key: n.key("k"), Value: []byte(v)} }
	first := n.commit(absent, put("1"))
	n.refused(cluster.ErrConflict, absent, put("2"))
	second := n.commit([]cluster.Condition{{Key: n.key("k"), Modified: first}}, put("2"))
	n.refused(cluster.ErrConflict, []cluster.Condition{{Key: n.key("k"), Modified: first}}, put("3"))
	n.commit([]cluster.Condition{{Key: n.key("k"), Modified: second}}, cluster.Change{Key: n.key("k"), Delete: true})
	n.refused(cluster.ErrConflict, []cluster.Condition{{Key: n.key("k"), Modified: second}}, put("3"))
	n.commit(absent, put("4"))
	items, _ := n.get(n.prefix)
	n.expect(n.texts(items), "k=4")
}

// testTogether: one condition that fails undoes all, and changes share a revision.
func testTogether(t *testing.T, s Subject) {
	n := s.node(t)
	a := n.put("a", "1")
	changes := []cluster.Change{{Key: n.key("a"), Delete: true}, {Key: n.key("b"), Value: []byte("2")}, {Key: n.key("c"), Value: []byte("3")}}
	n.refused(cluster.ErrConflict, []cluster.Condition{{Key: n.key("a"), Modified: a}, {Key: n.key("d"), Modified: a}}, changes...)
	items, _ := n.get(n.prefix)
	n.expect(n.texts(items), "a=1")
	at := n.commit([]cluster.Condition{{Key: n.key("a"), Modified: a}, {Key: n.key("d")}}, changes...)
	items, _ = n.get(n.prefix)
	n.expect(n.texts(items), "b=2", "c=3")
	if items[0].Modified != at || items[1].Modified != at {
		t.Fatalf("found %+v, expected revision %d", items, at)
	}
}

// testCounters: nodes that raise a counter by compare and swap lose none.
func testCounters(t *testing.T, s Subject) {
	const nodes, raises = 4, 10
	n := s.node(t)
	n.put("counter", "")
	failed := make(chan error, nodes)
	for range nodes {
		other := s.node(t)
		go func() { failed <- other.raise(n.key("counter"), raises) }()
	}
	for range nodes {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if items, _ := n.get(n.key("counter")); len(items[0].Value) != nodes*raises {
		t.Fatalf("found %d raises, expected %d", len(items[0].Value), nodes*raises)
	}
}

// raise appends to a key so many times.
func (n node) raise(key string, times int) error {
	for done := 0; done < times; {
		items, _, err := n.Get(n.t.Context(), key)
		if err != nil {
			return err
		}
		value := append(slices.Clone(items[0].Value), '+')
		_, err = n.Commit(n.t.Context(), []cluster.Condition{{Key: key, Modified: items[0].Modified}}, []cluster.Change{{Key: key, Value: value}})
		switch {
		case err == nil:
			done++
		case !errors.Is(err, cluster.ErrConflict):
			return err
		}
	}
	return nil
}

// watcher collects what a Watch reports.
type watcher struct {
	n    node
	from <-chan cluster.Batch
	last cluster.Revision
}

func (n node) watch(ctx context.Context, from cluster.Revision) *watcher {
	return &watcher{n, n.Watch(ctx, n.prefix, from), from}
}

// next returns the next batch.
func (w *watcher) next() cluster.Batch {
	w.n.t.Helper()
	select {
	case b, open := <-w.from:
		if !open {
			w.n.t.Fatal("the channel is closed")
		}
		return b
	case <-time.After(eventually.Patience):
		w.n.t.Fatal("nothing came")
	}
	panic("not reached")
}

// takes returns so many events as "name=value", or "-name".
func (w *watcher) takes(count int) (all []string) {
	w.n.t.Helper()
	for len(all) < count {
		b := w.next()
		if b.Err != nil {
			w.n.t.Fatal(b.Err)
		}
		for _, e := range b.Events {
			if e.Modified < w.last || e.Modified > b.Revision {
				w.n.t.Fatalf("found %+v behind %d in a batch up to %d", e, w.last, b.Revision)
			}
			w.last = e.Modified
			text := strings.TrimPrefix(e.Key, w.n.prefix) + "=" + string(e.Value)
			if e.Deleted {
				text = "-" + strings.TrimPrefix(e.Key, w.n.prefix)
			}
			all = append(all, text)
		}
		w.last = b.Revision
	}
	return all
}

func testWatch(t *testing.T, s Subject) {
	n, other := s.node(t), s.node(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, at := n.get(n.prefix)
	w := n.watch(ctx, at)
	other.put("a", "1")
	other.commit(nil, cluster.Change{Key: "/test/elsewhere", Value: []byte("x")})
	other.commit(nil, cluster.Change{Key: n.key("a"), Delete: true}, cluster.Change{Key: n.key("b"), Value: []byte("2")})
	n.expect(w.takes(3), "a=1", "-a", "b=2")
	for i := range 20 {
		other.put("many", fmt.Sprint(i))
	}
	for i, text := range w.takes(20) {
		if text != fmt.Sprint("many=", i) {
			t.Fatalf("found %s as number %d", text, i)
		}
	}
	cancel()
	for range w.from {
	}
}

// testWatchFrom: a Watch begins behind its revision, also one of long ago.
func testWatchFrom(t *testing.T, s Subject) {
	n := s.node(t)
	n.put("a", "1")
	from := n.put("b", "2")
	n.put("c", "3")
	n.put("d", "4")
	w := n.watch(t.Context(), from)
	n.expect(w.takes(2), "c=3", "d=4")
	n.put("e", "5")
	n.expect(w.takes(1), "e=5")
}

func testCompacted(t *testing.T, s Subject) {
	n := s.node(t)
	from := n.put("a", "1")
	n.put("a", "2")
	at := n.put("a", "3")
	s.Compact(t, at)
	w := n.watch(t.Context(), from)
	if b := w.next(); !errors.Is(b.Err, cluster.ErrCompacted) || len(b.Events) > 0 {
		t.Fatalf("found %+v, expected ErrCompacted", b)
	}
	if _, open := <-w.from; open {
		t.Fatal("the channel is open")
	}
	items, again := n.get(n.prefix)
	n.expect(n.texts(items), "a=3")
	w = n.watch(t.Context(), again)
	n.put("b", "4")
	n.expect(w.takes(1), "b=4")
}

// lease begins one with a key.
func (n node) lease(ttl time.Duration) cluster.Lease {
	n.t.Helper()
	before := time.Now()
	l, err := n.Lease(n.t.Context(), ttl)
	if err != nil {
		n.t.Fatal(err)
	}
	if d := l.Deadline(); d.Before(before.Add(ttl)) {
		n.t.Fatalf("found a deadline %v after the start, expected at least %v", d.Sub(before), ttl)
	}
	n.commit(nil, cluster.Change{Key: n.key("leased"), Value: []byte("x"), Lease: l.ID()})
	items, _ := n.get(n.key("leased"))
	if items[0].Lease != l.ID() {
		n.t.Fatalf("found lease %x, expected %x", items[0].Lease, l.ID())
	}
	return l
}

// testLeaseEnds: the keys of a State that does nothing any more go, no sooner than its
// deadline said.
func testLeaseEnds(t *testing.T, s Subject) {
	n, dying := s.node(t), s.node(t)
	_, at := n.get(n.prefix)
	w := n.watch(t.Context(), at)
	l := dying.lease(s.Shortest)
	n.expect(w.takes(1), "leased=x")
	_ = dying.Close()
	<-l.Done()
	n.expect(w.takes(1), "-leased")
	if early := time.Until(l.Deadline()); early > 0 {
		t.Fatalf("the lease ended %v before its deadline", early)
	}
}

func testRevoke(t *testing.T, s Subject) {
	n := s.node(t)
	l := n.lease(time.Minute)
	if err := l.Revoke(t.Context()); err != nil {
		t.Fatal(err)
	}
	items, _ := n.get(n.prefix)
	n.expect(n.texts(items))
	<-l.Done()
	if err := l.Revoke(t.Context()); err != nil {
		t.Fatalf("revoked twice: %v", err)
	}
}

// testKept: a lease outlives its time by keepalives, and its deadline moves on.
func testKept(t *testing.T, s Subject) {
	n := s.node(t)
	l := n.lease(s.Shortest)
	first := l.Deadline()
	eventually.Holds(t, "the first deadline passes, and the lease has another", func() bool {
		return time.Now().After(first) && l.Deadline().After(time.Now())
	})
	items, _ := n.get(n.prefix)
	n.expect(n.texts(items), "leased=x")
	select {
	case <-l.Done():
		t.Fatal("the lease is over")
	default:
	}
}

func testNoLease(t *testing.T, s Subject) {
	n := s.node(t)
	n.refused(cluster.ErrNoLease, nil, cluster.Change{Key: n.key("k"), Value: []byte("1"), Lease: 1 << 40})
	items, _ := n.get(n.prefix)
	n.expect(n.texts(items))
}

func testClosed(t *testing.T, s Subject) {
	n := s.node(t)
	_, at := n.get(n.prefix)
	w := n.watch(t.Context(), at)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if b := w.next(); !errors.Is(b.Err, cluster.ErrClosed) {
		t.Fatalf("found %+v, expected ErrClosed", b)
	}
	if _, _, err := n.Get(t.Context(), n.prefix); !errors.Is(err, cluster.ErrClosed) {
		t.Fatalf("found %v, expected ErrClosed", err)
	}
	n.refused(cluster.ErrClosed, nil)
}

// testNoQuorum: without a quorum all fails and nothing is done twice; with it again, a
// Watch has missed nothing.
func testNoQuorum(t *testing.T, s Subject) {
	if s.Quorum == nil {
		t.Skip("the quorum of this one cannot be taken away")
	}
	n := s.node(t)
	at := n.put("a", "1")
	w := n.watch(t.Context(), at)
	s.Quorum(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, _, err := n.Get(ctx, n.prefix); !errors.Is(err, cluster.ErrNoQuorum) {
		t.Errorf("get: found %v, expected ErrNoQuorum", err)
	}
	change := []cluster.Change{{Key: n.key("a"), Value: []byte("2")}}
	condition := []cluster.Condition{{Key: n.key("a"), Modified: at}}
	_, err := n.Commit(ctx, condition, change)
	if !errors.Is(err, cluster.ErrNoQuorum) && !errors.Is(err, cluster.ErrUnknown) {
		t.Errorf("commit: found %v, expected ErrNoQuorum or ErrUnknown", err)
	}
	s.Quorum(t, true)
	eventually.Holds(t, "the change is made, by the first attempt or another", func() bool {
		_, err := n.Commit(t.Context(), condition, change)
		return err == nil || errors.Is(err, cluster.ErrConflict)
	})
	n.put("b", "3")
	n.expect(w.takes(2), "a=2", "b=3")
}
