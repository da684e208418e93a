package target

import (
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/numa"
)

// origin is where a connection's packets come from; below 0: unknown.
type origin struct {
	node int // that the network device is attached to, as the kernel numbers it
	cpu  int // that the kernel received them on last
}

var nowhere = origin{-1, -1}

// nics tells which NUMA node the network device of a local address is attached
// to. Addresses come and go: one that is not known is looked up, but not more
// often than once in lookupInterval, whatever peers do.
type nics struct {
	devices func() map[netip.Addr]string // of all local addresses
	nodeOf  func(device string) int      // as the kernel numbers it; below 0: unknown
	cpuOf   func(syscall.Conn) int       // of a socket; below 0: unknown

	mu struct {
		sync.Mutex
		nodes  map[netip.Addr]int
		looked time.Time
	}
}

const lookupInterval = time.Second

func newNICs() *nics { return &nics{devices: localDevices, nodeOf: numa.NICNode, cpuOf: incomingCPU} }

// node returns the kernel's number of the node that addr's device is attached to;
// -1 when the device is virtual or nothing is known. It may read files: not for
// event threads.
func (n *nics) node(addr netip.Addr) int {
	if addr.Zone() != "" { // the device itself
		return n.nodeOf(addr.Zone())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	node, known := n.mu.nodes[addr]
	if !known && time.Since(n.mu.looked) >= lookupInterval {
		n.look()
		node, known = n.mu.nodes[addr]
	}
	if !known {
		return -1
	}
	return node
}

// look reads all addresses. The caller holds mu.
func (n *nics) look() {
	n.mu.looked = time.Now()
	n.mu.nodes = map[netip.Addr]int{}
	for addr, device := range n.devices() {
		n.mu.nodes[addr] = n.nodeOf(device)
	}
}

// localDevices asks the kernel. What it does not tell is unknown.
func localDevices() map[netip.Addr]string {
	found := map[netip.Addr]string{}
	interfaces, err := net.Interfaces()
	if err != nil {
		return found
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				found[prefix.Addr().Unmap()] = i.Name
			}
		}
	}
	return found
}

// incomingCPU asks the kernel (socket(7), SO_INCOMING_CPU). With receive-side
// scaling or packet steering it is where all packets of the connection come in.
func incomingCPU(c syscall.Conn) int {
	cpu := -1
	raw, err := c.SyscallConn()
	if err != nil {
		return cpu
	}
	_ = raw.Control(func(fd uintptr) { // of a closed socket it is unknown
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_INCOMING_CPU); err == nil {
			cpu = n
		}
	})
	return cpu
}

// nearest returns the thread of a group for a connection: of those on the node of
// its device, or of all if there are none, the least loaded; of several such the
// one on the CPU that its packets come in on, then one on the node of that CPU. To
// be near does not make up for more work: it saves a part of what a packet costs.
func (s *Server) nearest(group []*thread, from origin) *thread {
	var near []*thread
	for _, th := range group {
		if from.node >= 0 && s.config.Topology.MemoryNode(th.loop.Node()) == from.node {
			near = append(near, th)
		}
	}
	if len(near) == 0 {
		near = group
	}
	best := near[0]
	for _, th := range near[1:] {
		load, least := th.load.Load(), best.load.Load()
		if load < least || load == least && s.closeness(th, from.cpu) > s.closeness(best, from.cpu) {
			best = th
		}
	}
	return best
}

// closeness is 2 for a thread on the CPU, 1 for one on its node.
func (s *Server) closeness(th *thread, cpu int) int {
	switch {
	case cpu < 0:
		return 0
	case th.loop.CPU() == cpu:
		return 2
	case th.loop.Node() >= 0 && th.loop.Node() == s.config.Topology.NodeOf(cpu):
		return 1
	}
	return 0
}
