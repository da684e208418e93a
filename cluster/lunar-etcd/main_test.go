package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/clustertest"
	"lunar/cluster/etcd"
	"lunar/cluster/member"
	"lunar/internal/eventually"
)

// asKeeper makes the test binary be lunar-etcd.
const asKeeper = "LUNAR_ETCD_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asStarter); dir != "" && os.Getenv(asKeeper) == "" && !(len(os.Args) > 1 && os.Args[1] == asEtcd) {
		starter(member.Dir(dir))
	}
	if os.Getenv(asKeeper) != "" || len(os.Args) > 1 && os.Args[1] == asEtcd {
		main()
		return
	}
	os.Exit(m.Run())
}

// node is a member with its keeper, a process.
type node struct {
	t    *testing.T
	name string
	dir  member.Dir
	port int
	log  *eventually.Output
	cmd  *exec.Cmd
	with func(*exec.Cmd) // changes how it is started; nil: as it is
}

// ports returns the first of three free ports in a row, which nobody else in this test has.
func ports(t *testing.T) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if free(port) && free(port+1) && free(port+2) {
			return port
		}
	}
	t.Fatal("found no three free ports in a row")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

func (n *node) self() member.Node {
	return member.Node{Name: n.name, Address: "127.0.0.1", Port: n.port}
}

func newNode(t *testing.T, name string) *node {
	return &node{t: t, name: name, dir: member.Dir(filepath.Join(t.TempDir(), "etcd")), port: ports(t)}
}

// first is the first member of a new cluster.
func first(t *testing.T, quota int64) *node {
	t.Helper()
	n := newNode(t, "n1")
	if err := n.dir.Init("test", n.self(), member.DefaultPace, quota); err != nil {
		t.Fatal(err)
	}
	n.start()
	return n
}

// waits hears why a join is not done yet.
func (n *node) waits(why error) { n.t.Logf("%s waits: %v", n.name, why) }

// token is one of this member's.
func (n *node) token() string {
	n.t.Helper()
	state := n.state()
	defer state.Close()
	token, err := n.dir.NewToken(n.t.Context(), state, time.Minute)
	if err != nil {
		n.t.Fatal(err)
	}
	return token
}

// admits is a node that has joined by a token of this member's, and has not started.
func (n *node) admits(name string) *node {
	n.t.Helper()
	other := newNode(n.t, name)
	if err := other.dir.Join(n.t.Context(), n.token(), other.self(), n.waits); err != nil {
		n.t.Fatal(err)
	}
	return other
}

// joins adds a member, with a token of this one's.
func (n *node) joins(name string) *node {
	n.t.Helper()
	other := n.admits(name)
	other.start()
	return other
}

// two are the members of a cluster, which vote, and its state.
func two(t *testing.T) (n1, n2 *node, s *etcd.State) {
	t.Helper()
	n1 = first(t, member.DefaultQuota)
	s = n1.state()
	t.Cleanup(func() { s.Close() })
	answers(t, s)
	n2 = n1.joins("n2")
	voters(t, s, 2)
	return n1, n2, s
}

// start starts the keeper.
func (n *node) start() {
	n.t.Helper()
	n.log = &eventually.Output{}
	n.cmd = exec.Command(os.Args[0], "run", "--dir", string(n.dir))
	n.cmd.Env = append(os.Environ(), asKeeper+"=1")
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if n.with != nil {
		n.with(n.cmd)
	}
	if err := n.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	cmd := n.cmd
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s: %s", n.name, n.log)
		}
	})
}

// state opens the cluster's state as the node does, with all members that it knows of.
func (n *node) state() *etcd.State {
	n.t.Helper()
	o, err := n.dir.Options()
	if err != nil {
		n.t.Fatal(err)
	}
	s, err := etcd.Open(o)
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// etcdOf is the process that is a node's etcd.
func (n *node) etcdOf() int {
	n.t.Helper()
	return eventually.Passes(n.t, "the node's etcd", func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", n.cmd.Process.Pid, n.cmd.Process.Pid))
		children := strings.Fields(string(text))
		if tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.cmd.Process.Pid)); err == nil && len(children) == 0 {
			for _, task := range tasks {
				text, _ := os.ReadFile(task)
				children = append(children, strings.Fields(string(text))...)
			}
		}
		pid := 0
		if len(children) > 0 {
			_, _ = fmt.Sscan(children[0], &pid)
		}
		return pid
	}, func(pid int) bool { return pid > 0 })
}

// stopEtcd has a node's etcd stand still, all threads of it: the signal returns before they do.
func (n *node) stopEtcd() {
	n.t.Helper()
	pid := n.etcdOf()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		n.t.Fatal(err)
	}
	eventually.Holds(n.t, "etcd stands still", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(thread string) bool {
			text, err := os.ReadFile(thread)
			return err != nil || !strings.Contains(string(text), ") T ") // proc_pid_stat(5)
		})
	})
}

// three are the members of one cluster, all with votes.
func three(t *testing.T) []*node {
	t.Helper()
	n1 := first(t, member.DefaultQuota)
	s := n1.state()
	defer s.Close()
	answers(t, s)
	all := []*node{n1}
	for _, name := range []string{"n2", "n3"} {
		all = append(all, n1.joins(name))
		voters(t, s, len(all))
	}
	return all
}

// answers waits until a state answers.
func answers(t *testing.T, s cluster.State) {
	t.Helper()
	eventually.Finds(t, "the state answers", nil, func() error {
		_, _, err := s.Get(t.Context(), "/test/")
		return err
	})
}

// voters waits until so many members have a vote.
func voters(t *testing.T, s *etcd.State, count int) {
	t.Helper()
	eventually.Finds(t, "members with a vote", count, func() (voting int) {
		members, err := s.Members(t.Context())
		if err != nil {
			return -1
		}
		for _, m := range members {
			if !m.Learner && m.Name != "" {
				voting++
			}
		}
		return voting
	})
}

// TestState: etcd passes the tests of every State.
func TestState(t *testing.T) {
	n := first(t, member.DefaultQuota)
	answers(t, n.state())
	clustertest.Run(t, clustertest.Subject{
		Open: func(testing.TB) cluster.State { return n.state() },
		Compact: func(t testing.TB, at cluster.Revision) {
			s := n.state()
			defer s.Close()
			if err := s.Compact(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		},
		Quorum: func(t testing.TB, there bool) {
			if !there {
				n.stopEtcd()
				return
			}
			if err := syscall.Kill(n.etcdOf(), syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		},
		Shortest: time.Second,
	})
}

// TestLeaderKilled: a watch misses nothing and a lease is kept while the leader is killed,
// again and again; what is committed is there.
func TestLeaderKilled(t *testing.T) {
	const rounds = 3
	nodes := three(t)
	s := nodes[0].state()
	defer s.Close()
	_, at, err := s.Get(t.Context(), "/test/")
	if err != nil {
		t.Fatal(err)
	}
	seen := s.Watch(t.Context(), "/test/", at)
	l, err := s.Lease(t.Context(), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	committed := 0
	put := func() time.Duration {
		began := time.Now()
		eventually.Holds(t, "a commit", func() bool {
			items, _, err := s.Get(t.Context(), "/test/count")
			if err != nil {
				return false
			}
			condition := cluster.Condition{Key: "/test/count"}
			if len(items) > 0 {
				condition.Modified = items[0].Modified
				if string(items[0].Value) == fmt.Sprint(committed) {
					return true // by an attempt whose answer was lost
				}
			}
			_, err = s.Commit(t.Context(), []cluster.Condition{condition}, []cluster.Change{{Key: "/test/count", Value: fmt.Append(nil, committed)}})
			return err == nil
		})
		return time.Since(began)
	}
	for range rounds {
		committed++
		put()
		leader := leaderOf(t, s, nodes)
		if err := syscall.Kill(leader.etcdOf(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		committed++
		t.Logf("a commit behind the leader's death took %v; the lease has %v left", put(), time.Until(l.Deadline()))
	}
	for next := 1; next <= committed; {
		b := <-seen
		if b.Err != nil {
			t.Fatal(b.Err)
		}
		for _, e := range b.Events {
			if string(e.Value) != fmt.Sprint(next) {
				t.Fatalf("found %s, expected %d", e.Value, next)
			}
			next++
		}
	}
	select {
	case <-l.Done():
		t.Fatal("the lease is over")
	default:
	}
}

// leaderOf is the node whose etcd leads.
func leaderOf(t *testing.T, s *etcd.State, nodes []*node) *node {
	t.Helper()
	return eventually.Passes(t, "the leader", func() *node {
		for _, n := range nodes {
			st, err := s.Status(t.Context(), fmt.Sprintf("https://127.0.0.1:%d", n.port+1))
			if err == nil && st.Leader == st.Header.Member && st.Leader != 0 {
				return n
			}
		}
		return nil
	}, func(n *node) bool { return n != nil })
}

// TestNoQuorum: with one of three members there is no quorum, which is what it says, and
// it is there again with the second one. Keepers start their etcd again.
func TestNoQuorum(t *testing.T) {
	nodes := three(t)
	s := nodes[0].state()
	defer s.Close()
	answers(t, s)
	for _, n := range nodes[1:] {
		n.stopEtcd()
	}
	if _, _, err := s.Get(t.Context(), "/test/"); !errors.Is(err, cluster.ErrNoQuorum) {
		t.Fatalf("found %v, expected ErrNoQuorum", err)
	}
	for _, n := range nodes[1:] {
		if err := syscall.Kill(n.etcdOf(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	answers(t, s)
}

// TestGuard: the lease of a process that dies ends at once, and long before its time.
func TestGuard(t *testing.T) {
	n := first(t, member.DefaultQuota)
	s := n.state()
	defer s.Close()
	answers(t, s)
	l, err := s.Lease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dying, err := net.Dial("unix", n.dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(dying, "lease %d\n", l.ID())
	at, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: "/test/node", Lease: l.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	_ = dying.Close() // as the kernel does for a process that dies
	if b := <-s.Watch(t.Context(), "/test/", at); b.Err != nil || !b.Events[0].Deleted {
		t.Fatalf("found %+v", b)
	}
}

// asStarter makes the test binary be a process that opens a node's state and waits to be
// killed, as tgtd is.
const asStarter = "LUNAR_ETCD_TEST_STARTER"

func starter(dir member.Dir) {
	s, err := dir.Open("test", "n1", os.Stderr)
	if err == nil {
		_, err = s.Lease(context.Background(), time.Hour)
	}
	fmt.Println(err)
	select {}
}

// TestOutlivesStarter: a keeper that a process has started goes on when that is killed with
// its group, ends the lease of the dead one, and is found by the next; there is only one.
func TestOutlivesStarter(t *testing.T) {
	n := newNode(t, "n1")
	if err := n.dir.Init("test", n.self(), member.DefaultPace, member.DefaultQuota); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexport %s=1\necho $$ >%s/pid\nexec %s \"$@\"\n", asKeeper, programs, os.Args[0])
	if err := os.WriteFile(filepath.Join(programs, "lunar-etcd"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd, said := exec.Command(os.Args[0]), &eventually.Output{}
	cmd.Env = append(os.Environ(), asStarter+"="+string(n.dir), "PATH="+programs+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = said, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	eventually.Says(t, said.String, "<nil>")
	text, err := os.ReadFile(filepath.Join(programs, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		eventually.Holds(t, "the keeper ends", func() bool { return syscall.Kill(pid, 0) != nil })
	})
	s := n.state()
	defer s.Close()
	leases := func() int {
		count, err := s.Leases(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if found := leases(); found != 1 {
		t.Fatalf("found %d leases, expected 1", found)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually.Finds(t, "leases of the dead process", 0, leases)
	next, err := n.dir.Open("test", "n1", os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, _, err := next.Get(t.Context(), "/test/"); err != nil {
		t.Fatal(err)
	}
	if err := keeper(n.dir, os.Stderr).Run(t.Context()); !errors.Is(err, member.ErrRuns) {
		t.Fatalf("found %v, expected ErrRuns", err)
	}
	if _, err := n.dir.Open("test", "n2", os.Stderr); err == nil || !strings.Contains(err.Error(), "found node n1") {
		t.Fatalf("another node's directory: found %v", err)
	}
}

// TestFull: a state that has reached its quota has room again by itself if it was history
// that took it, and else when something was deleted.
func TestFull(t *testing.T) {
	const quota = 16 << 20
	n := first(t, quota)
	s := n.state()
	defer s.Close()
	answers(t, s)
	value := make([]byte, 512<<10)
	fill := func(key func(int) string) {
		for i := 0; ; i++ {
			_, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: key(i), Value: value}})
			if errors.Is(err, cluster.ErrFull) {
				return
			}
			if err != nil || i > 1000 {
				t.Fatalf("found %v at %d, expected ErrFull", err, i)
			}
		}
	}
	fill(func(int) string { return "/test/same" })
	eventually.Finds(t, "room, when history is forgotten", nil, func() error {
		_, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: "/test/small"}})
		return err
	})
	for more := 0; !strings.Contains(n.log.String(), "the cluster's state is full"); more++ {
		fill(func(i int) string { return fmt.Sprintf("/test/%d-%d", more, i) })
	}
	items, _, err := s.Get(t.Context(), "/test/")
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(items, 100) {
		var deletions []cluster.Change
		for _, i := range part {
			deletions = append(deletions, cluster.Change{Key: i.Key, Delete: true})
		}
		if _, err := s.Commit(t.Context(), nil, deletions); err != nil {
			t.Fatalf("a deletion from a full state: %v", err)
		}
	}
	eventually.Finds(t, "room, when something was deleted", nil, func() error {
		_, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: "/test/small"}})
		return err
	})
}
