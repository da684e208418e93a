package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/member"
	"lunar/internal/eventually"
)

// TestDataLost: the first member without its data is no new cluster, which would be empty and
// answer: others may be there that have it all.
func TestDataLost(t *testing.T) {
	n := first(t, member.DefaultQuota)
	s := n.state()
	answers(t, s)
	if _, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: "/test/k", Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	eventually.Holds(t, "it knows that there is a cluster", func() bool {
		settings, err := n.dir.Settings()
		return err == nil && settings.Joined
	})
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	_ = n.cmd.Wait()
	if err := os.RemoveAll(filepath.Join(string(n.dir), "data")); err != nil {
		t.Fatal(err)
	}
	n.start()
	eventually.Holds(t, "etcd ends", func() bool { return strings.Contains(n.log.String(), "etcd has ended, and is started again") })
	s = n.state()
	defer s.Close()
	if items, _, err := s.Get(t.Context(), "/test/"); err == nil {
		t.Errorf("found a state with %d keys", len(items))
	}
}

// TestSalvage: of a member that is left alone a backup is made from its directory, while it does not
// run; its data stay as they are.
func TestSalvage(t *testing.T) {
	n := first(t, member.DefaultQuota)
	other := n.joins("n2")
	s := n.state()
	defer s.Close()
	keys := cluster.KeysOf("test")
	eventually.Holds(t, "both are members", func() bool {
		_, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: keys.Owner("v"), Value: []byte("last")}})
		members, failed := s.Members(t.Context())
		return err == nil && failed == nil && len(members) == 2 && !members[0].Learner && !members[1].Learner
	})
	_ = other.cmd.Process.Kill()
	_ = other.cmd.Wait()
	file := filepath.Join(t.TempDir(), "backup")
	salvage := func() (string, error) {
		cmd := exec.Command(os.Args[0], "backup", "--dir", string(n.dir), file)
		cmd.Env = append(os.Environ(), asKeeper+"=1")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	if said, err := salvage(); err == nil || !strings.Contains(said, "the member runs already") {
		t.Errorf("while it runs: found %q, %v", said, err)
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	_ = n.cmd.Wait()
	for range 2 {
		if said, err := salvage(); err != nil || !strings.Contains(said, "1 key as this member knew them, at revision ") {
			t.Fatalf("found %q, %v", said, err)
		}
	}
	left, err := os.ReadDir(string(n.dir))
	if err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "salvage") }) {
		t.Errorf("found %v, %v", left, err)
	}
	fresh := first(t, member.DefaultQuota)
	restored := fresh.state()
	defer restored.Close()
	answers(t, restored)
	if r, err := member.Restore(t.Context(), restored, "test", file); err != nil || r.Written != 1 {
		t.Errorf("found %+v, %v", r, err)
	}
	n.start()
	other.start()
	eventually.Holds(t, "the members of before go on", func() bool {
		items, _, err := s.Get(t.Context(), keys.Owner("v"))
		return err == nil && len(items) == 1 && string(items[0].Value) == "last"
	})
}

// TestBackup: a new cluster has what the file of the old one has.
func TestBackup(t *testing.T) {
	n := first(t, member.DefaultQuota)
	s := n.state()
	defer s.Close()
	answers(t, s)
	keys := cluster.KeysOf("test")
	l, err := s.Lease(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var all []cluster.Change
	for i := range 110 {
		all = append(all, cluster.Change{Key: keys.Owner(fmt.Sprintf("%03d", i)), Value: make([]byte, 10<<10)})
	}
	all = append(all, cluster.Change{Key: keys.Identity(), Value: []byte("x")}, cluster.Change{Key: keys.Node("n1"), Lease: l.ID()})
	if _, err := s.Commit(t.Context(), nil, all); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	count, _, err := member.Backup(t.Context(), s, "test", file)
	if err != nil || count != 111 {
		t.Fatalf("found %d keys, error %v, expected 111", count, err)
	}
	if _, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: keys.Owner("005"), Value: []byte("other")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := member.Restore(t.Context(), s, "test", file); !errors.Is(err, cluster.ErrConflict) {
		t.Fatalf("found %v, expected ErrConflict", err)
	}
	other := first(t, member.DefaultQuota)
	restored := other.state()
	defer restored.Close()
	answers(t, restored)
	if r, err := member.Restore(t.Context(), restored, "test", file); err != nil || r.Written != 111 {
		t.Fatalf("found %+v, error %v, expected 111 keys", r, err)
	}
	items, _, err := restored.Get(t.Context(), keys.Owner("109"))
	if err != nil || len(items) != 1 || len(items[0].Value) != 10<<10 {
		t.Fatalf("found %d items, error %v", len(items), err)
	}
	contents, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	contents[len(contents)-2] ^= 1
	if err := os.WriteFile(file, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := member.Restore(t.Context(), restored, "test", file); err == nil {
		t.Fatal("a damaged file was restored")
	}
}
