package target

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"lunar/internal/numa"
)

// nics tells which NUMA node the network device of a local address is attached
// to. Addresses come and go: one that is not known is looked up, but not more
// often than once in lookupInterval, whatever peers do.
type nics struct {
	devices func() map[netip.Addr]string // of all local addresses
	nodeOf  func(device string) int      // as the kernel numbers it; below 0: unknown

	mu struct {
		sync.Mutex
		nodes  map[netip.Addr]int
		looked time.Time
	}
}

const lookupInterval = time.Second

func newNICs() *nics { return &nics{devices: localDevices, nodeOf: numa.NICNode} }

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

// nearest returns the thread of a group for a connection whose device is attached
// to the node nic, as the kernel numbers it: the least loaded of that node's, or
// of all if it has none there.
func (s *Server) nearest(group []*thread, nic int) *thread {
	var near []*thread
	for _, th := range group {
		if nic >= 0 && s.config.Topology.MemoryNode(th.loop.Node()) == nic {
			near = append(near, th)
		}
	}
	if len(near) > 0 {
		return leastLoaded(near)
	}
	return leastLoaded(group)
}
