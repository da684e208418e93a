package mem

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/clustertest"
)

// TestConformance: in virtual time, in which no request waits longer than Patience and no lease
// ends because the machine is busy.
func TestConformance(t *testing.T) {
	var net *Network
	clustertest.Run(t, clustertest.Subject{
		Open:     func(testing.TB) cluster.State { return net.State("n") },
		Compact:  func(_ testing.TB, at cluster.Revision) { net.Compact(at) },
		Quorum:   func(_ testing.TB, there bool) { net.SetQuorum(there) },
		Shortest: 300 * time.Millisecond,
		Within: func(t *testing.T, test func(*testing.T)) {
			synctest.Test(t, func(t *testing.T) {
				net = NewNetwork()
				test(t)
			})
		},
	})
}

func put(key, value string) []cluster.Change {
	return []cluster.Change{{Key: key, Value: []byte(value)}}
}

// bubble runs a test in virtual time on a network with two nodes.
func bubble(t *testing.T, test func(t *testing.T, net *Network, a, b cluster.State)) {
	synctest.Test(t, func(t *testing.T) {
		net := NewNetwork()
		a, b := net.State("a"), net.State("b")
		defer a.Close()
		defer b.Close()
		test(t, net, a, b)
	})
}

// TestAnswerLost: what was asked for happens, and who asked does not know.
func TestAnswerLost(t *testing.T) {
	bubble(t, func(t *testing.T, net *Network, a, b cluster.State) {
		net.Lose("a", func() bool { return true })
		began := time.Now()
		_, err := a.Commit(t.Context(), nil, put("k", "1"))
		if took := time.Since(began); !errors.Is(err, cluster.ErrUnknown) || took != Patience {
			t.Fatalf("found %v after %v, expected ErrUnknown after %v", err, took, Patience)
		}
		if items, _, err := b.Get(t.Context(), "k"); err != nil || len(items) != 1 {
			t.Fatalf("found %v, %v, expected the key", items, err)
		}
	})
}

// TestLate: a request that its sender has given up arrives later, and a condition meets
// it.
func TestLate(t *testing.T) {
	bubble(t, func(t *testing.T, net *Network, a, b cluster.State) {
		net.Delay("a", func() time.Duration { return 5 * time.Second })
		_, err := a.Commit(t.Context(), []cluster.Condition{{Key: "k"}}, put("k", "late"))
		if !errors.Is(err, cluster.ErrUnknown) {
			t.Fatalf("found %v, expected ErrUnknown", err)
		}
		if _, err := b.Commit(t.Context(), []cluster.Condition{{Key: "k"}}, put("k", "first")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if items, _, err := b.Get(t.Context(), "k"); err != nil || string(items[0].Value) != "first" {
			t.Fatalf("found %v, %v, expected what was committed first", items, err)
		}
	})
}

// TestCut: a node that is cut off fails, its watch waits, its lease ends for others and
// not before its deadline, and afterwards it hears of all.
func TestCut(t *testing.T) {
	bubble(t, func(t *testing.T, net *Network, a, b cluster.State) {
		const ttl = 3 * time.Second
		l, err := a.Lease(t.Context(), ttl)
		if err != nil {
			t.Fatal(err)
		}
		at, err := a.Commit(t.Context(), nil, []cluster.Change{{Key: "k", Lease: l.ID()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cutOff, other := a.Watch(ctx, "", at), b.Watch(ctx, "", at)
		net.Cut("a", true)
		if _, _, err := a.Get(t.Context(), ""); !errors.Is(err, cluster.ErrNoQuorum) {
			t.Fatalf("found %v, expected ErrNoQuorum", err)
		}
		if e := <-other; !e.Events[0].Deleted || time.Now().Before(l.Deadline()) {
			t.Fatalf("found %+v %v before the deadline", e, time.Until(l.Deadline()))
		}
		synctest.Wait()
		select {
		case e := <-cutOff:
			t.Fatalf("found %+v on a node that is cut off", e)
		case <-l.Done():
			t.Fatal("a lease is known to be over where nobody can know")
		default:
		}
		net.Cut("a", false)
		if e := <-cutOff; !e.Events[0].Deleted {
			t.Fatalf("found %+v, expected the deletion", e)
		}
		<-l.Done()
	})
}

// TestQuorumLost: leases do not end without a quorum, and last their whole time when there
// is one again, as with a new leader of etcd.
func TestQuorumLost(t *testing.T) {
	bubble(t, func(t *testing.T, net *Network, a, b cluster.State) {
		l, err := a.Lease(t.Context(), 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		at, err := a.Commit(t.Context(), nil, []cluster.Change{{Key: "k", Lease: l.ID()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		gone := b.Watch(ctx, "k", at)
		net.SetQuorum(false)
		_ = a.Close()
		time.Sleep(time.Minute)
		net.SetQuorum(true)
		back := time.Now()
		<-gone
		if took := time.Since(back); took != 2*time.Second {
			t.Fatalf("the lease ended %v after the quorum came back, expected 2 s", took)
		}
	})
}

func TestFull(t *testing.T) {
	net := NewNetwork()
	s := net.State("a")
	defer s.Close()
	net.SetRoom(10)
	if _, err := s.Commit(t.Context(), nil, put("k", "0123456789")); !errors.Is(err, cluster.ErrFull) {
		t.Fatalf("found %v, expected ErrFull", err)
	}
	if _, err := s.Commit(t.Context(), nil, put("k", "012345678")); err != nil {
		t.Fatal(err)
	}
}
