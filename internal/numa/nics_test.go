package numa

import (
	"net/netip"
	"testing"
	"time"
)

func TestNICNodes(t *testing.T) {
	here, later := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::7")
	addrs, looks := map[netip.Addr]string{here: "eth1"}, 0
	n := &NICs{
		devices: func() map[netip.Addr]string { looks++; return addrs },
		nodeOf:  func(device string) int { return map[string]int{"eth1": 1, "eth2": 2}[device] - 1 },
	}
	if got := n.Node(here); got != 0 {
		t.Errorf("%v is on node %d, expected 0", here, got)
	}
	addrs = map[netip.Addr]string{here: "lo", later: "eth2"}
	for range 3 {
		if got := n.Node(later); got != -1 {
			t.Fatalf("an address that is new within the interval is on node %d, expected none", got)
		}
	}
	if looks != 1 {
		t.Errorf("looked %d times, expected once in the interval", looks)
	}
	n.mu.looked = time.Now().Add(-lookupInterval)
	if got := n.Node(later); got != 1 {
		t.Errorf("%v is on node %d, expected 1", later, got)
	}
	if got := n.Node(here); got != -1 || looks != 2 {
		t.Errorf("an address that has moved to another device is on node %d after %d looks, expected none after 2", got, looks)
	}
	if got := n.Node(netip.MustParseAddr("fe80::1%eth2")); got != 1 || looks != 2 {
		t.Errorf("a link-local address is on node %d after %d looks, expected that of its zone without another", got, looks)
	}
}

func TestLocalDevicesHaveLoopback(t *testing.T) {
	if got := localDevices()[netip.MustParseAddr("127.0.0.1")]; got == "" {
		t.Skip("no IPv4 loopback device here")
	} else if NICNode(got) != -1 {
		t.Errorf("device %s of the loopback address has a node, expected none", got)
	}
}
