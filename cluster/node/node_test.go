package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lunar/cluster"
	"lunar/cluster/ownership"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs a test in time of its own.
func bubble(t *testing.T, test func(*testing.T, *site)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		defer s.end()
		test(t, s)
	})
}

// within checks how long something took, in the bubble's time.
func within(t *testing.T, what string, took, least, most time.Duration) {
	t.Helper()
	if took < least || took > most {
		t.Errorf("%s took %v, expected %v to %v", what, took, least, most)
	}
}

// A node that is silent loses a volume without a cache when it is suspected, and one with a
// cache when its lease is over, whatever it serves meanwhile.
func TestSilentOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		began := time.Now()
		s.net.Cut("n1", true)
		s.owned("plain", "n2", "n1")
		within(t, "the takeover of a volume without a cache", time.Since(began), 0, suspectTime+100*time.Millisecond)
		s.owned("cached", "n2", "n1")
		within(t, "the takeover of a volume with a cache", time.Since(began), suspectTime, leaseTime+100*time.Millisecond)
		if until := s.disks["n1 cached"].trusts(); !until.Before(s.disks["n2 cached"].served) {
			t.Errorf("the old owner serves cached reads until %v behind the new one's begin", until.Sub(s.disks["n2 cached"].served))
		}
		if s.write("n1", "plain") || s.write("n1", "cached") {
			t.Error("the old owner can write")
		}
		s.until("the old owner holds", func() bool { return s.disks["n1 plain"].is() == "hold" && s.disks["n1 cached"].is() == "hold" })
		s.net.Cut("n1", false)
		s.owned("plain", "n2")
		s.owned("cached", "n2")
	})
}

// The same, with the death of etcd's leader at that moment: the next one renews all leases.
func TestSilentOwnerAndLeader(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		began := time.Now()
		s.net.Cut("n1", true)
		s.net.SetQuorum(false)
		time.Sleep(leaseTime - 100*time.Millisecond)
		s.net.SetQuorum(true)
		s.owned("cached", "n2", "n1")
		s.owned("plain", "n2", "n1")
		within(t, "the takeover", time.Since(began), leaseTime, 2*leaseTime+200*time.Millisecond)
		if until := s.disks["n1 cached"].trusts(); !until.Before(s.disks["n2 cached"].served) {
			t.Error("the old owner serves cached reads behind the new one's begin")
		}
	})
}

// kept expects n1 to own volumes that nobody has taken over, and to serve them.
func (s *site) kept(t *testing.T, volumes ...string) {
	t.Helper()
	for _, v := range volumes {
		if r := s.status("n2").Volumes[v].Owner; !s.write("n1", v) || r.Epoch != 1 {
			t.Errorf("%s was taken over: %+v", v, r)
		}
	}
}

// Members of etcd whose disks stall for longer than the leases have nothing taken over.
func TestStall(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		for range 5 {
			s.net.SetQuorum(false)
			time.Sleep(3 * time.Second)
			s.net.SetQuorum(true)
			time.Sleep(leaseTime)
		}
		s.kept(t, "plain", "cached")
	})
}

// A process that dies with its leases, as the child process sees to, is replaced at once.
func TestDeadOwner(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		s.net.Cut("n1", true)
		for _, i := range s.items(s.keys.Node("n1")) {
			if err := s.net.Revoke(i.Lease); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		s.owned("plain", "n2", "n1")
		s.owned("cached", "n2", "n1")
		within(t, "the takeover", time.Since(began), 0, 20*time.Millisecond)
	})
}

func (s *site) items(key string) []cluster.Item {
	items, _ := s.net.Get(key)
	return items
}

// A planned move closes the volume before it is opened, and nobody is fenced.
func TestMove(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		began := time.Now()
		if err := s.nodes["n3"].Move(t.Context(), "cached", "n2"); err != nil {
			t.Fatal(err)
		}
		within(t, "the move", time.Since(began), 0, 20*time.Millisecond)
		s.owned("cached", "n2")
		s.owned("plain", "n1")
		if len(s.fence) > 0 {
			t.Errorf("%v are fenced", s.fence)
		}
		if err := s.nodes["n3"].Move(t.Context(), "cached", "n4"); err == nil || !strings.Contains(err.Error(), `has not given it to "n4": found that it does not live`) {
			t.Errorf("a move to nobody: error %v", err)
		}
		s.owned("cached", "n2")
	})
}

// A node that is drained gives its volumes away, takes none, and gets them back only when it
// is asked to, or when failback is automatic.
func TestDrain(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "back")
		if err := s.nodes["n2"].Drain(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		s.owned("plain", "n2")
		s.owned("back", "n2")
		if err := s.nodes["n1"].Fill(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
		s.owned("back", "n1")
		s.owned("plain", "n2")
		if err := s.nodes["n2"].Fill(t.Context(), "n1"); err == nil || !strings.Contains(err.Error(), `"n1" is not drained`) {
			t.Errorf("a second time: error %v", err)
		}
		if len(s.fence) > 0 {
			t.Errorf("%v are fenced", s.fence)
		}
	})
}

// A node that stops gives its volumes away first.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		n1 := s.nodes["n1"]
		delete(s.nodes, "n1")
		began := time.Now()
		if err := n1.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.owned("cached", "n2")
		within(t, "stopping", time.Since(began), 0, 20*time.Millisecond)
		if items := s.items(s.keys.Node("n1")); len(items) > 0 || len(s.fence) > 0 {
			t.Errorf("found the node's record %v, and %v are fenced", items, s.fence)
		}
	})
}

// A volume for which Ceph does not answer delays no other one, and is opened when it does.
func TestSlowVolume(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "slow")
		s.mu.Lock()
		s.stuck["slow"] = true
		s.mu.Unlock()
		began := time.Now()
		s.net.Cut("n1", true)
		s.owned("plain", "n2", "n1")
		within(t, "the takeover", time.Since(began), 0, suspectTime+100*time.Millisecond)
		time.Sleep(3 * holdTime)
		if how := s.disks["n2 slow"].is() + s.disks["n3 slow"].is(); how != "holdhold" {
			t.Errorf("found %q, expected both to hold", how)
		}
		s.mu.Lock()
		s.stuck["slow"] = false
		s.mu.Unlock()
		s.until("the slow one is served", func() bool { return s.write("n2", "slow") || s.write("n3", "slow") })
	})
}

// A node whose way to Ceph is cut while it takes a volume over leaves that to another one.
func TestSickCandidate(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain")
		s.mu.Lock()
		s.stuck["n2"] = true
		s.mu.Unlock()
		s.net.Cut("n1", true)
		s.owned("plain", "n3", "n1")
	})
}

// Without a quorum the owner goes on, without its cache once its lease is over, and trusts
// it again when the quorum is back.
func TestNoQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("cached")
		d := s.disks["n1 cached"]
		s.until("the cache is trusted", func() bool { return d.trusts().After(time.Now()) })
		s.net.SetQuorum(false)
		time.Sleep(10 * leaseTime)
		if !s.write("n1", "cached") || d.trusts().After(time.Now()) {
			t.Errorf("writes: %v, and cached reads until %v", s.write("n1", "cached"), d.trusts())
		}
		if alone := s.status("n1").Alone; !strings.Contains(alone, "etcd does not answer") {
			t.Errorf("found that it is alone for %q, expected that etcd does not answer", alone)
		}
		s.net.SetQuorum(true)
		s.until("the cache is trusted again", func() bool { return d.trusts().After(time.Now()) })
		if st := s.status("n1"); st.Volumes["cached"].Owner.Epoch != 1 || st.Alone != "" {
			t.Errorf("found epoch %d and alone %q, expected that nothing was taken over", st.Volumes["cached"].Owner.Epoch, st.Alone)
		}
	})
}

// A node whose record is gone although it lives bypasses its cache until it is back in the
// state and has seen whether the volume is still its own.
func TestOwnRecordLost(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("cached")
		s.net.Cut("n2", true)
		s.net.Cut("n3", true)
		time.Sleep(2 * leaseTime)
		if err := s.net.Revoke(s.items(s.keys.Node("n1"))[0].Lease); err != nil {
			t.Fatal(err)
		}
		d := s.disks["n1 cached"]
		s.until("the cache is not trusted", func() bool { return d.trusts().IsZero() })
		s.until("the cache is trusted again", func() bool { return d.trusts().After(time.Now()) })
		if st := s.status("n1"); st.Volumes["cached"].Owner.Epoch != 1 || st.Alone != "" {
			t.Errorf("found %+v", st)
		}
		s.net.Cut("n2", false)
		s.net.Cut("n3", false)
		s.owned("cached", "n1")
	})
}

// A process with the name of another one waits until that one's lease is over; it gets the
// volumes that were that one's, for nobody else is there.
func TestSameNameAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		old := s.join("n1", "cached")
		s.owned("cached", "n1")
		disk := s.disks["n1 cached"]
		s.join("n1", "cached")
		time.Sleep(10 * leaseTime)
		if st := s.status("n1"); !strings.Contains(st.Alone, "another process") {
			t.Errorf("found %q, expected that the name is in use", st.Alone)
		}
		old.resign() // as if it died: its volumes are not given away
		old.end()
		began := time.Now()
		s.owned("cached", "n1")
		within(t, "the takeover", time.Since(began), 0, suspectTime)
		if !s.fence[disk.instance] || s.status("n1").Volumes["cached"].Owner.Epoch != 2 {
			t.Error("the earlier process is not fenced")
		}
		if err := old.Stop(context.Background()); err == nil {
			t.Error("a node that has ended stops")
		}
	})
}

// Whoever is fenced although nobody wants the volume gets it again, by another instance.
func TestFencedForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain")
		s.mu.Lock()
		s.fence[s.disks["n1 plain"].instance] = true
		s.mu.Unlock()
		s.write("n1", "plain")
		s.until("it writes again", func() bool { return s.write("n1", "plain") })
		if r := s.status("n2").Volumes["plain"].Owner; r.Node != "n1" || r.Epoch != 2 {
			t.Errorf("found %+v", r)
		}
	})
}

// What others cannot read harms nothing.
func TestGarbage(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain")
		for _, key := range []string{s.keys.Owner("other"), s.keys.Owner("plain"), s.keys.Move("plain"), s.keys.Node("n9"), s.keys.Pulse("n9"), s.keys.All() + "?"} {
			if _, err := s.net.Commit(nil, []cluster.Change{{Key: key, Value: []byte("{")}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(leaseTime)
		s.owned("plain", "n1")
		if _, err := s.net.Commit(nil, []cluster.Change{
			{Key: s.keys.Owner("plain"), Value: ownership.Record{Node: "n3", Incarnation: "none", Epoch: 7, Standing: ownership.Owned, Instances: []string{"x"}}.Encode()},
			{Key: s.keys.Move("plain"), Delete: true},
		}); err != nil {
			t.Fatal(err)
		}
		s.until("somebody owns it again", func() bool {
			return s.status("n2").Volumes["plain"].Owner.Epoch > 7 && (s.write("n1", "plain") || s.write("n2", "plain"))
		})
	})
}

// A volume whose record somebody has deleted is owned again.
func TestRecordDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain")
		if _, err := s.net.Commit(nil, []cluster.Change{{Key: s.keys.Owner("plain"), Delete: true}}); err != nil {
			t.Fatal(err)
		}
		s.until("there is a record", func() bool { return len(s.items(s.keys.Owner("plain"))) == 1 })
		s.until("somebody owns it again", func() bool { return s.write("n1", "plain") || s.write("n2", "plain") })
	})
}

// Removing a volume gives it away.
func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain")
		if err := s.nodes["n1"].Remove(t.Context(), "plain"); err != nil {
			t.Fatal(err)
		}
		delete(s.disks, "n1 plain")
		s.until("another one has it", func() bool { return s.write("n2", "plain") })
	})
}

// A node that ends its lease trusts its cache no more before others can see that.
func TestNoTrustBehindTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("cached")
		s.until("cached reads are served", func() bool { return s.disks["n1 cached"].trusts().After(time.Now()) })
		s.net.Delay("n1", func() time.Duration { return 200 * time.Millisecond })
		s.nodes["n1"].resign()
		s.until("the record is gone", func() bool { return len(s.items(s.keys.Node("n1"))) == 0 })
		if until := s.disks["n1 cached"].trusts(); until.After(time.Now()) {
			t.Errorf("cached reads are served for %v still", time.Until(until))
		}
		s.net.Delay("n1", nil)
	})
}

// Removing a volume while Ceph does not answer waits for what is under way.
func TestRemoveWhileOpening(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.join("n1")
		d := &disk{site: s, node: "n1", volume: "v"}
		s.disks["n1 v"], s.stuck["v"] = d, true
		n := s.nodes["n1"]
		if err := n.Add("v", VolumeConfig{Owners: []string{"n1"}}, d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(suspectTime)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := n.Remove(ctx, "v"); err == nil {
			t.Error("found no error")
		}
		unlock := d.lock()
		if d.calls != 0 {
			t.Errorf("%d calls are under way", d.calls)
		}
		unlock()
		if err := n.stop(t.Context(), []string{"v"}); err != nil { // which was removed meanwhile
			t.Error(err)
		}
	})
}

// A node that stops while the state does not answer closes its volumes, and waits for nobody.
func TestStopAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *site) {
		s.three("plain", "cached")
		n1 := s.nodes["n1"]
		delete(s.nodes, "n1")
		s.net.Cut("n2", true)
		s.net.Cut("n3", true)
		s.net.Cut("n1", true)
		time.Sleep(10 * leaseTime)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := n1.Stop(ctx); !errors.Is(err, errDeserted) {
			t.Errorf("found error %v", err)
		}
		within(t, "stopping", time.Since(began), 0, 2*leaseTime)
		if s.disks["n1 plain"].open || s.disks["n1 cached"].open {
			t.Error("a volume is open still")
		}
		s.net.Cut("n2", false)
		s.net.Cut("n3", false)
		for _, v := range []string{"plain", "cached"} {
			s.until("another one has "+v, func() bool { return s.write("n2", v) || s.write("n3", v) })
		}
	})
}

// TestAloneIsLoggedOnce: while etcd does not answer, the reason names another member each time.
func TestAloneIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	n := &Node{config: Config{Node: "n1", Keys: cluster.KeysOf("prod"), Logger: slog.New(slog.NewTextHandler(&log, nil))}, why: "it has not joined yet"}
	k := leased{key: n.config.Keys.Node("n1")}
	for i := range 5 {
		n.joined(k, fmt.Errorf("https://192.0.2.%d:7422: %w", i, cluster.ErrNoQuorum))
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(n.alone, "192.0.2.4") {
		t.Errorf("found %d lines, and %q", lines, n.alone)
	}
	n.joined(k, nil)
	if lines := strings.Count(log.String(), "\n"); lines != 2 || n.alone != "" {
		t.Errorf("found %d lines, and %q", lines, n.alone)
	}
}
