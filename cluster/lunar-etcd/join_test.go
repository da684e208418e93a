package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/member"
	"lunar/internal/eventually"
)

// TestTokens: a token works once, not for another cluster, and not when it is too old.
func TestTokens(t *testing.T) {
	n := first(t, member.DefaultQuota)
	s := n.state()
	defer s.Close()
	answers(t, s)
	old, err := n.dir.NewToken(t.Context(), s, -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	token := n.token()
	join := func(token, name, want string) {
		t.Helper()
		other := newNode(t, name)
		err := other.dir.Join(t.Context(), token, other.self(), other.waits)
		if text := fmt.Sprint(err); !strings.Contains(text, want) {
			t.Fatalf("found %v, expected %q", err, want)
		}
	}
	join(old, "n2", "too old")
	join(token, "n1", "is a member already")
	if err := newNode(t, "n2").dir.Join(t.Context(), token, member.Node{Name: "n2", Address: "127.0.0.1", Port: n.port}, n.waits); !strings.Contains(fmt.Sprint(err), "of node n1, expected node n2's own") {
		t.Fatalf("found %v with n1's address, expected that it is refused", err)
	}
	join(token, "n2", "<nil>")
	join(token, "n3", "was used")
	// The token of a cluster leads to where another one answers.
	stranger := &node{t: t, name: "n1", dir: member.Dir(filepath.Join(t.TempDir(), "etcd")), port: n.port}
	if err := stranger.dir.Init("test", stranger.self(), member.DefaultPace, member.DefaultQuota); err != nil {
		t.Fatal(err)
	}
	foreign, err := stranger.dir.NewToken(t.Context(), s, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	join(foreign, "n4", "another cluster's certificate")
}

// TestLeave: a member that leaves puts its copy aside and ends; so does a dead one in the
// others' lists; one whose server runs, and the last one, cannot leave.
func TestLeave(t *testing.T) {
	_, n2, s := two(t)
	if err := member.Leave(t.Context(), s, "test", "n3"); err == nil || !strings.Contains(err.Error(), "found no member n3, expected one of n1, n2") {
		t.Fatalf("found %v", err)
	}
	serves := cluster.Change{Key: cluster.KeysOf("test").Node("n2")}
	if _, err := s.Commit(t.Context(), nil, []cluster.Change{serves}); err != nil {
		t.Fatal(err)
	}
	if err := member.Leave(t.Context(), s, "test", "n2"); !errors.Is(err, member.ErrServes) || !strings.Contains(err.Error(), "lunar cluster drain n2") {
		t.Fatalf("a node that serves: found %v", err)
	}
	serves.Delete = true
	if _, err := s.Commit(t.Context(), nil, []cluster.Change{serves}); err != nil {
		t.Fatal(err)
	}
	if err := member.Leave(t.Context(), s, "test", "n2"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the member's copy is put aside", func() bool {
		_, err := n2.dir.Settings()
		return errors.Is(err, member.ErrNoMember)
	})
	voters(t, s, 1)
	if err := member.Leave(t.Context(), s, "test", "n1"); err == nil || !strings.Contains(err.Error(), "last member") {
		t.Fatalf("found %v", err)
	}
}

// TestJoinAtOnce: two nodes that are admitted by two members at once both become members.
func TestJoinAtOnce(t *testing.T) {
	n1, n2, s := two(t)
	var both sync.WaitGroup
	for name, by := range map[string]*node{"n3": n1, "n4": n2} {
		token, n := by.token(), newNode(t, name)
		both.Go(func() {
			if err := n.dir.Join(t.Context(), token, n.self(), n.waits); err != nil {
				t.Error(err)
				return
			}
			n.start()
		})
	}
	both.Wait()
	voters(t, s, 4)
}

// TestMembersChangeMeanwhile: a node that starts some time after it was admitted finds other members
// than there were then, the one that has admitted it not among them.
func TestMembersChangeMeanwhile(t *testing.T) {
	_, n2, s := two(t)
	n3 := n2.admits("n3")
	if err := member.Leave(t.Context(), s, "test", "n2"); err != nil {
		t.Fatal(err)
	}
	voters(t, s, 1)
	n3.start()
	voters(t, s, 2)
}
