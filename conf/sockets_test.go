package conf

import (
	"net/netip"
	"slices"
	"testing"
)

// TestSockets: what is found by key is what comparing with each before would find.
func TestSockets(t *testing.T) {
	var all []netip.AddrPort
	for _, text := range []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.1:2", "192.0.2.1:0", "0.0.0.0:0", "[::1]:1", "[::ffff:192.0.2.1]:1", "0.0.0.0:1", "[::]:1", "[::]:2", "[fe80::1%a]:2", "[fe80::1%b]:2"} {
		all = append(all, netip.MustParseAddrPort(text))
	}
	n := len(all)
	for i := range n * n * n {
		before := []netip.AddrPort{all[i%n], all[i/n%n]}
		s := sockets{}
		for number, p := range before {
			s.add(p, number)
		}
		p := all[i/n/n]
		want := slices.IndexFunc(before, func(o netip.AddrPort) bool { return overlap(p, o) })
		if found, ok := s.overlapping(p); ok != (want >= 0) || ok && found != want {
			t.Errorf("%v after %v: found %d, %v, expected %d", p, before, found, ok, want)
		}
	}
}

// TestISERSockets: as TestSockets, with interfaces.
func TestISERSockets(t *testing.T) {
	var all []ISERPortal
	for _, text := range []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.1:0", "0.0.0.0:0", "0.0.0.0:1", "[::]:1", "[::1]:1"} {
		all = append(all, ISERPortal{Addr: netip.MustParseAddrPort(text)})
	}
	for _, port := range []uint16{1, 2} {
		for _, name := range []string{"eth0", "eth1"} {
			all = append(all, ISERPortal{Addr: netip.AddrPortFrom(netip.Addr{}, port), Interface: name})
		}
	}
	n := len(all)
	for i := range n * n * n {
		before := []ISERPortal{all[i%n], all[i/n%n]}
		s := iserSockets{map[ISERPortal]int{}, sockets{}}
		for number, p := range before {
			s.add(p, number)
		}
		p := all[i/n/n]
		want := slices.IndexFunc(before, func(o ISERPortal) bool {
			return p.Interface == o.Interface && (p.Addr == o.Addr || p.Interface == "" && overlap(p.Addr, o.Addr))
		})
		if found, ok := s.overlapping(p); ok != (want >= 0) || ok && found != want {
			t.Errorf("%v after %v: found %d, %v, expected %d", p, before, found, ok, want)
		}
	}
}
