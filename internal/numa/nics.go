package numa

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// NICs tells which NUMA node the network device of a local address is attached
// to. Addresses come and go: one that is not known is looked up, but not more
// often than once in lookupInterval, whatever peers do.
type NICs struct {
	devices func() map[netip.Addr]string // of all local addresses
	nodeOf  func(device string) int      // as the kernel numbers it; below 0: unknown

	mu struct {
		sync.Mutex
		nodes  map[netip.Addr]int
		looked time.Time
	}
}

const lookupInterval = time.Second

// NewNICs returns those of this machine.
func NewNICs() *NICs { return &NICs{devices: localDevices, nodeOf: NICNode} }

// Node returns the kernel's number of the node that addr's device is attached to;
// -1 when the device is virtual or nothing is known. It may read files: not for
// event threads.
func (n *NICs) Node(addr netip.Addr) int {
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
func (n *NICs) look() {
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
