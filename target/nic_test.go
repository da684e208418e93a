package target

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"lunar/internal/evloop"
	"lunar/internal/numa"
)

func TestNICNodes(t *testing.T) {
	here, later := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::7")
	addrs, looks := map[netip.Addr]string{here: "eth1"}, 0
	n := &nics{
		devices: func() map[netip.Addr]string { looks++; return addrs },
		nodeOf:  func(device string) int { return map[string]int{"eth1": 1, "eth2": 2}[device] - 1 },
	}
	if got := n.node(here); got != 0 {
		t.Errorf("%v is on node %d, expected 0", here, got)
	}
	addrs = map[netip.Addr]string{here: "lo", later: "eth2"}
	for range 3 {
		if got := n.node(later); got != -1 {
			t.Fatalf("an address that is new within the interval is on node %d, expected none", got)
		}
	}
	if looks != 1 {
		t.Errorf("looked %d times, expected once in the interval", looks)
	}
	n.mu.looked = time.Now().Add(-lookupInterval)
	if got := n.node(later); got != 1 {
		t.Errorf("%v is on node %d, expected 1", later, got)
	}
	if got := n.node(here); got != -1 || looks != 2 {
		t.Errorf("an address that has moved to another device is on node %d after %d looks, expected none after 2", got, looks)
	}
	if got := n.node(netip.MustParseAddr("fe80::1%eth2")); got != 1 || looks != 2 {
		t.Errorf("a link-local address is on node %d after %d looks, expected that of its zone without another", got, looks)
	}
}

func TestLocalDevicesHaveLoopback(t *testing.T) {
	if got := localDevices()[netip.MustParseAddr("127.0.0.1")]; got == "" {
		t.Skip("no IPv4 loopback device here")
	} else if numa.NICNode(got) != -1 {
		t.Errorf("device %s of the loopback address has a node, expected none", got)
	}
}

// A connection's thread is the least loaded of its device's node in the unit's
// group, or of the group.
func TestNearestThread(t *testing.T) {
	s := &Server{config: Config{Topology: numa.Topology{Nodes: []numa.Node{{ID: 0}, {ID: 1}}}}}
	for i := range 4 {
		loop, err := evloop.New(evloop.Config{Name: fmt.Sprintf("event%d", i), CPU: -1, Node: i % 2})
		if err != nil {
			t.Fatal(err)
		}
		defer loop.Stop()
		s.threads = append(s.threads, &thread{loop: loop})
	}
	for i, load := range []int32{1, 5, 2, 4} { // nodes 0, 1, 0, 1
		s.threads[i].load.Store(load)
	}
	for _, c := range []struct {
		group []*thread
		nic   int
		want  int
	}{
		{s.threads, -1, 0},
		{s.threads, 0, 0},
		{s.threads, 1, 3},
		{s.threads, 7, 0},
		{s.threads[1:2], 0, 1},
		{s.threads[1:3], 1, 1},
	} {
		if got := s.nearest(c.group, c.nic); got != s.threads[c.want] {
			t.Errorf("device on node %d, %d threads: %s, expected %s", c.nic, len(c.group), got.loop.Name(), s.threads[c.want].loop.Name())
		}
	}
}
