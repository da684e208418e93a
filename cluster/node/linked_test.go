package node

import (
	"strings"
	"testing"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/link/linktest"
)

// linked runs a test of nodes that are linked, in time of its own.
func linked(t *testing.T, test func(*testing.T, *site)) {
	bubble(t, func(t *testing.T, s *site) {
		s.wires, s.links = linktest.New(), map[string]*link.Links{}
		test(t, s)
	})
}

// linkedThree is three, with links between all.
func (s *site) linkedThree(volumes ...string) {
	s.t.Helper()
	s.three(volumes...)
	s.until("all are linked", func() bool {
		for _, l := range s.links {
			for _, h := range l.All() {
				if h.At.IsZero() || len(l.All()) != 2 {
					return false
				}
			}
		}
		return true
	})
}

// An owner that only the state does not hear keeps its volumes, whose commands go on; its cached
// reads end with its lease, and begin again when the state hears it.
func TestCutFromState(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain", "cached")
		d := s.disks["n1 cached"]
		s.until("the cache is trusted", func() bool { return d.trusts().After(time.Now()) })
		s.net.Cut("n1", true)
		for range 100 {
			time.Sleep(leaseTime / 10)
			if !s.write("n1", "plain") || !s.write("n1", "cached") {
				t.Fatal("the owner cannot write")
			}
		}
		if d.trusts().After(time.Now()) {
			t.Errorf("cached reads are served for %v still", time.Until(d.trusts()))
		}
		if items := s.items(s.keys.Node("n1")); len(items) > 0 {
			t.Errorf("found the node's record %v, which the state cannot have", items)
		}
		if alone := s.status("n1").Alone; !strings.Contains(alone, "etcd does not answer") {
			t.Errorf("found that it is alone for %q", alone)
		}
		for _, v := range []string{"plain", "cached"} {
			if how := s.disks["n2 "+v].history; how[len(how)-1] != "standby for n1" {
				t.Errorf("%s at the second node: %v", v, how)
			}
		}
		before := len(s.disks["n2 plain"].history)
		s.net.Cut("n1", false)
		s.until("the cache is trusted again", func() bool { return d.trusts().After(time.Now()) })
		s.owned("plain", "n1")
		s.owned("cached", "n1")
		if st := s.status("n2").Volumes; st["plain"].Owner.Epoch != 1 || st["cached"].Owner.Epoch != 1 || len(s.fence) > 0 || len(s.disks["n2 plain"].history) != before {
			t.Errorf("found %+v, and %v are fenced", st, s.fence)
		}
	})
}

// An owner that is cut from the state and from all others loses its volumes as ever.
func TestCutFromAll(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain", "cached")
		began := time.Now()
		s.net.Cut("n1", true)
		s.wires.CutAll("n1", true)
		s.owned("plain", "n2", "n1")
		within(t, "the takeover of a volume without a cache", time.Since(began), 0, suspectTime+100*time.Millisecond)
		s.owned("cached", "n2", "n1")
		within(t, "the takeover of a volume with a cache", time.Since(began), suspectTime, leaseTime+100*time.Millisecond)
		s.wires.CutAll("n1", false)
		s.net.Cut("n1", false)
		s.owned("plain", "n2")
	})
}

// One that a single node hears keeps its volumes: the others hear that of it.
func TestHeardByOne(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain")
		s.wires.Cut("n1", "n2", true)
		s.wires.Cut("n2", "n1", true)
		time.Sleep(2 * suspectTime)
		s.net.Cut("n1", true)
		time.Sleep(10 * leaseTime)
		if !s.write("n1", "plain") || s.disks["n2 plain"].is() != "standby for n1" {
			t.Errorf("found %q at the second node", s.disks["n2 plain"].is())
		}
		began := time.Now()
		s.wires.Cut("n1", "n3", true)
		s.owned("plain", "n2", "n1")
		within(t, "the takeover", time.Since(began), 0, suspectTime+suspectTime/5+100*time.Millisecond)
		s.wires.CutAll("n1", false)
	})
}

// Links that are cut have nothing taken over while the state hears the owner.
func TestLinksCut(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain", "cached")
		for _, n := range []string{"n1", "n2", "n3"} {
			s.wires.CutAll(n, true)
		}
		time.Sleep(10 * leaseTime)
		s.kept(t, "plain", "cached")
	})
}

// A process that dies is heard no more at once: links delay no takeover.
func TestDeadLinkedOwner(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain", "cached")
		s.net.Cut("n1", true)
		for _, i := range s.items(s.keys.Node("n1")) {
			if err := s.net.Revoke(i.Lease); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		_ = s.links["n1"].Close()
		s.owned("plain", "n2", "n1")
		s.owned("cached", "n2", "n1")
		within(t, "the takeover", time.Since(began), 0, 20*time.Millisecond)
	})
}

// An owner that is cut from the state and is drained, or has lost its volume, is no owner by
// being heard.
func TestHeardInVain(t *testing.T) {
	for what, do := range map[string]func(*site) error{
		"drained": func(s *site) error { return s.nodes["n2"].Drain(s.t.Context(), "n1") },
		"fenced": func(s *site) error {
			s.mu.Lock()
			s.fence[s.disks["n1 plain"].instance] = true
			s.mu.Unlock()
			s.write("n1", "plain")
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			linked(t, func(t *testing.T, s *site) {
				s.linkedThree("plain")
				s.net.Cut("n1", true)
				time.Sleep(2 * leaseTime)
				if err := do(s); err != nil {
					t.Fatal(err)
				}
				s.owned("plain", "n2", "n1")
				if s.write("n1", "plain") {
					t.Error("the old owner can write")
				}
			})
		})
	}
}

// mute has Ceph not answer nodes, or answer them again.
func (s *site) mute(is bool, nodes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		if s.stuck[n] = is; is {
			s.silent[n] = time.Now()
		} else {
			delete(s.silent, n)
		}
	}
}

// An owner that Ceph does not answer, which answers another node, gives its volumes to that one,
// which fences it; they do not come back at once. Where Ceph answers nobody, nothing moves.
func TestCutFromCeph(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain", "cached")
		time.Sleep(6 * muteTime)
		all := []string{"n1", "n2", "n3"}
		s.mute(true, all...)
		time.Sleep(6 * muteTime)
		s.mute(false, all...)
		time.Sleep(time.Second)
		if st := s.status("n2").Volumes; st["plain"].Owner.Epoch != 1 || st["cached"].Owner.Epoch != 1 {
			t.Fatalf("found %+v, expected that nothing moves where Ceph answers nobody", st)
		}
		began, old := time.Now(), s.disks["n1 cached"].instance
		s.mute(true, "n1")
		s.owned("plain", "n2", "n1")
		s.owned("cached", "n2", "n1")
		within(t, "the move", time.Since(began), muteTime, muteTime+leaseTime)
		if until := s.disks["n1 cached"].trusts(); !until.Before(s.disks["n2 cached"].served) || !s.fence[old] {
			t.Errorf("the old owner serves cached reads until %v, fenced: %v", until, s.fence)
		}
		began = time.Now()
		s.mute(false, "n1")
		s.mute(true, "n2")
		s.until("another node has it", func() bool { return s.write("n1", "plain") || s.write("n3", "plain") })
		within(t, "the next move", time.Since(began), 6*muteTime-leaseTime, 6*muteTime+leaseTime)
	})
}

// An owner that neither the state nor Ceph answers, and that is heard, loses its volumes to one that
// both answer, which fences it: whoever else hears it, and not before Ceph may have come back to it.
func TestCutFromStateAndCeph(t *testing.T) {
	for name, cut := range map[string]func(*site){
		"heard by all": func(*site) {},
		"heard by one": func(s *site) { s.wires.Cut("n1", "n2", true); s.wires.Cut("n2", "n1", true) },
	} {
		t.Run(name, func(t *testing.T) {
			linked(t, func(t *testing.T, s *site) {
				s.linkedThree("plain", "cached")
				cut(s)
				time.Sleep(2 * leaseTime)
				s.net.Cut("n1", true)
				time.Sleep(10 * leaseTime)
				began, old := time.Now(), s.disks["n1 plain"].instance
				s.mute(true, "n1", "n2", "n3")
				time.Sleep(4 * muteTime)
				if r := s.status("n2").Volumes["plain"].Owner; r.Epoch != 1 {
					t.Errorf("found epoch %d, expected that nothing moves where Ceph answers nobody", r.Epoch)
				}
				s.mute(false, "n2", "n3")
				s.owned("plain", "n2", "n1")
				s.owned("cached", "n2", "n1")
				within(t, "the takeover", time.Since(began), 5*muteTime, 5*muteTime+2*leaseTime)
				if !s.fence[old] {
					t.Errorf("the old owner is not fenced: %v", s.fence)
				}
				s.wires.CutAll("n1", false)
			})
		})
	}
}

// A node that Ceph does not answer takes nothing over where another one can.
func TestMuteCandidate(t *testing.T) {
	linked(t, func(t *testing.T, s *site) {
		s.linkedThree("plain")
		s.mute(true, "n2")
		time.Sleep(leaseTime)
		s.net.Cut("n1", true)
		s.wires.CutAll("n1", true)
		s.owned("plain", "n3", "n1")
		if r := s.status("n3").Volumes["plain"].Owner; r.Epoch != 2 {
			t.Errorf("found epoch %d, expected that the second node has not tried", r.Epoch)
		}
		s.wires.CutAll("n1", false)
	})
}
