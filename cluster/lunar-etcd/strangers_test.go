package main

import (
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/member"
	"lunar/internal/eventually"
)

// TestStrangersHoldTheDoor: connections of strangers that say nothing, more than the keeper has
// descriptors for, keep no node out that joins, and the deaths of processes are noticed beside them:
// it ended, and etcd with it.
func TestStrangersHoldTheDoor(t *testing.T) {
	n := newNode(t, "n1")
	if err := n.dir.Init("test", n.self(), member.DefaultPace, member.DefaultQuota); err != nil {
		t.Fatal(err)
	}
	n.with = func(c *exec.Cmd) {
		c.Args = append([]string{"sh", "-c", `ulimit -n 512; exec "$0" "$@"`}, append([]string{c.Path}, c.Args[1:]...)...)
		c.Path = "/bin/sh"
	}
	n.start()
	s := n.state()
	defer s.Close()
	answers(t, s)
	l, err := s.Lease(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	at, err := s.Commit(t.Context(), nil, []cluster.Change{{Key: "/test/node", Lease: l.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 700 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i/4), 1)}}
		c, err := from.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port+2))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	dying, err := net.Dial("unix", n.dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(dying, "lease %d\n", l.ID())
	_ = dying.Close()
	if b := <-s.Watch(t.Context(), "/test/", at); b.Err != nil || !b.Events[0].Deleted {
		t.Fatalf("found %+v", b)
	}
	n.admits("n2")
	if err := n.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the keeper is gone: %v", err)
	}
	eventually.Finds(t, "the state answers", nil, func() error {
		_, _, err := s.Get(t.Context(), "/test/")
		return err
	})
}
