package daemon

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestLoopbackWithoutIPv6(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("127.0.0.1:3260"), netip.MustParseAddrPort("[::1]:3260")
	address := func(cidr string) net.Addr {
		ip, n, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		n.IP = ip
		return n
	}
	lo4, lo6 := address("127.0.0.1/8"), address("::1/128")
	for _, f := range []struct {
		name            string
		portals, usable []netip.AddrPort
		machine         []net.Addr
	}{
		{"both", []netip.AddrPort{v4, v6}, []netip.AddrPort{v4, v6}, []net.Addr{lo4, lo6}},
		{"no IPv6", []netip.AddrPort{v4, v6}, []netip.AddrPort{v4}, []net.Addr{lo4}},
		{"nothing else is asked for", []netip.AddrPort{v6}, []netip.AddrPort{v6}, []net.Addr{lo4}},
	} {
		if got := withoutMissingLoopback(f.portals, f.machine); !slices.Equal(got, f.usable) {
			t.Errorf("%s: %v, expected %v", f.name, got, f.usable)
		}
	}
}
