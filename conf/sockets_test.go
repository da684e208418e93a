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
