package target

import (
	"fmt"
	"net/netip"
	"testing"

	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// A connection's thread is the least loaded of its device's node in the unit's
// group, or of the group.
func TestNearestThread(t *testing.T) {
	s := &Server{config: Config{Topology: numa.Topology{Nodes: []numa.Node{{ID: 0}, {ID: 1}}}}}
	s.threads = alternating(t, 4)
	for i, load := range []int32{1, 5, 2, 4} { // nodes 0, 1, 0, 1
		s.threads[i].load.Store(load)
	}
	for _, c := range []struct {
		group []*thread
		from  origin
		want  int
	}{
		{s.threads, nowhere, 0},
		{s.threads, origin{0, -1}, 0},
		{s.threads, origin{1, -1}, 3},
		{s.threads, origin{7, -1}, 0},
		{s.threads[1:2], origin{0, -1}, 1},
		{s.threads[1:3], origin{1, -1}, 1},
	} {
		if got := s.nearest(c.group, c.from); got != s.threads[c.want] {
			t.Errorf("from %+v, %d threads: %s, expected %s", c.from, len(c.group), got.loop.Name(), s.threads[c.want].loop.Name())
		}
	}
}

// Of threads with equally many connections the one on the CPU that the packets come
// in on is chosen, then one of that CPU's node; never one with more.
func TestThreadOfThePackets(t *testing.T) {
	s := &Server{config: Config{Topology: numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: []int{0, 1, 2}}, {ID: 1, CPUs: []int{3, 4, 5}}}}}}
	for i, at := range []place{{0, -1}, {0, 0}, {1, -1}, {1, -1}} {
		loop, err := evloop.New(evloop.Config{Name: fmt.Sprintf("event%d", i), CPU: at.cpu, Node: at.node})
		if err != nil {
			t.Fatal(err)
		}
		defer loop.Stop()
		s.threads = append(s.threads, &thread{loop: loop})
	}
	for _, c := range []struct {
		loads [4]int32
		from  origin
		want  int
	}{
		{[4]int32{}, origin{-1, 4}, 2},
		{[4]int32{}, origin{-1, 2}, 0},
		{[4]int32{}, origin{-1, 0}, 1},
		{[4]int32{0, 1}, origin{-1, 0}, 0},
		{[4]int32{1, 1, 2, 2}, origin{-1, 4}, 0},
		{[4]int32{1, 1, 2, 1}, origin{-1, 4}, 3},
		{[4]int32{}, origin{0, 4}, 0},
		{[4]int32{}, origin{-1, 9}, 0},
		{[4]int32{}, nowhere, 0},
	} {
		for i, load := range c.loads {
			s.threads[i].load.Store(load)
		}
		if got := s.nearest(s.threads, c.from); got != s.threads[c.want] {
			t.Errorf("loads %v, from %+v: %s, expected %s", c.loads, c.from, got.loop.Name(), s.threads[c.want].loop.Name())
		}
	}
	if pinned, other := s.closeness(s.threads[0], -1), s.closeness(s.threads[0], 1); pinned != 0 || other != 1 {
		t.Errorf("closeness %d of an unpinned thread to an unknown CPU and %d to one of its node, expected 0 and 1", pinned, other)
	}
}

// steered is a connection of which the kernel knows the CPU.
type steered struct{ LoginTransport }

func (steered) IncomingCPU() int      { return 5 }
func (steered) Local() netip.AddrPort { return netip.AddrPort{} }

// The CPU of a login is that of its transport, as far as that knows it.
func TestLoginAsksForTheCPU(t *testing.T) {
	p := &loginPhase{server: &Server{nodeOf: func(netip.Addr) int { return -1 }}, transport: steered{}}
	if got := p.origin(); got != (origin{-1, 5}) {
		t.Errorf("found origin %+v, expected CPU 5 of an unknown node", got)
	}
}

// What comes by RDMA stays on the event thread where it came in, so that is one of
// the node of the device that has the portal's address, if there is one.
func TestLoopsForDevice(t *testing.T) {
	near, far, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")
	s := &Server{config: Config{Topology: numa.Topology{Nodes: []numa.Node{{ID: 0}, {ID: 1}}}}}
	s.nodeOf = func(local netip.Addr) int {
		if node, known := map[netip.Addr]int{near: 0, far: 1, other: 7}[local]; known {
			return node
		}
		return -1
	}
	s.threads = alternating(t, 4)
	for _, c := range []struct {
		local netip.Addr
		want  string
	}{
		{near, "event0 event2 "}, {far, "event1 event3 "},
		{other, "event0 event1 event2 event3 "},                            // a node without event threads
		{netip.MustParseAddr("192.0.2.9"), "event0 event1 event2 event3 "}, // nothing known
	} {
		got := ""
		for _, l := range s.LoopsFor(1, c.local, netip.MustParseAddr("192.0.2.99")) {
			got += l.Name() + " "
		}
		if got != c.want {
			t.Errorf("%v: found %q, expected %q", c.local, got, c.want)
		}
	}
}

// alternating returns threads of the nodes 0 and 1 in turns.
func alternating(t *testing.T, n int) (threads []*thread) {
	t.Helper()
	for i := range n {
		loop, err := evloop.New(evloop.Config{Name: fmt.Sprintf("event%d", i), CPU: -1, Node: i % 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(loop.Stop)
		threads = append(threads, &thread{loop: loop})
	}
	return threads
}
