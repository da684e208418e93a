package conf

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// defaultListen is a portal group's listen list when it has none: every
// address of both families on the port that is registered for iSCSI.
const defaultListen = ":3260"

const wantListen = `address:port with a literal address, such as 192.0.2.1:3260, [2001:db8::1]:3260, or :3260 for all IPv4 and IPv6 addresses`

// ParseListen reads one element of a listen list. An empty address means all
// addresses of both families and gives two portals; a missing port is 3260.
// [::] alone is IPv6 only. Port 0 lets the kernel choose.
func ParseListen(text string) ([]netip.AddrPort, bool) {
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a.Unmap(), 3260)}, true
	}
	if p, ok := strings.CutPrefix(text, ":"); ok {
		port, err := strconv.ParseUint(p, 10, 16)
		both := []netip.AddrPort{
			netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)),
			netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port)),
		}
		return both, err == nil
	}
	p, err := netip.ParseAddrPort(text)
	return []netip.AddrPort{netip.AddrPortFrom(p.Addr().Unmap(), p.Port())}, err == nil
}

const wantListenISER = `a network interface with an RDMA device, such as eth2 or eth2:3260, or address:port as for listen`

// interfaceName is what Linux lets a network interface be called, but for names
// that look like numbers and addresses.
var interfaceName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,14}$`)

// ParseListenISER reads one element of a listen-iser list: an address as for
// listen, or an interface with or without a port.
func ParseListenISER(text string) (out []ISERPortal, ok bool) {
	if portals, ok := ParseListen(text); ok {
		for _, p := range portals {
			out = append(out, ISERPortal{Addr: p})
		}
		return out, true
	}
	name, port, found := strings.Cut(text, ":")
	if !found {
		port = "3260"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	p := ISERPortal{Interface: name, Addr: netip.AddrPortFrom(netip.Addr{}, uint16(number))}
	return []ISERPortal{p}, err == nil && interfaceName.MatchString(name)
}
