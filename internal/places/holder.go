package places

import (
	"net"
	"net/netip"
)

// Class says what is known of a holder. A weaker one is less.
type Class uint8

// The classes, from the weakest.
const (
	Stranger  Class = iota // nothing
	Returning              // had a place before a restart
	Proven                 // has proven who it is
	Known                  // is in a network that the configuration names
)

// Holder is who places are counted for. The zero value is a stranger of no
// address.
type Holder struct {
	Class   Class
	Network netip.Prefix // that its address is in, if strangers count by network too
	Name    string       // of an address, or of who has proven to be it
}

// Prefixes of what counts as one address and as one network. Who has an IPv6
// address has the /64 that it is in (RFC 6177 section 2), and often a /48.
const (
	networkBits4 = 24
	hostBits6    = 64
	networkBits6 = 48
)

// Of returns the holder of a class that an address is. Addresses that are
// IPv4-mapped count as IPv4.
func Of(c Class, a netip.Addr) Holder {
	host := Host(a)
	return Holder{Class: c, Network: networkOf(host), Name: host.String()}
}

// AddressOf is that of who is at the other end of a connection over TCP.
func AddressOf(conn net.Conn) (from netip.Addr, ok bool) {
	a, ok := conn.RemoteAddr().(*net.TCPAddr)
	if ok {
		from = a.AddrPort().Addr()
	}
	return from, ok
}

// Host is what counts as one address: an IPv4 address, or the /64 of an IPv6
// address by its lowest address.
func Host(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if !a.Is6() {
		return a
	}
	return netip.PrefixFrom(a, hostBits6).Masked().Addr()
}

func networkOf(host netip.Addr) netip.Prefix {
	bits := networkBits4
	if host.Is6() {
		bits = networkBits6
	}
	p, _ := host.Prefix(bits) // fails for the zero Addr alone, whose network is the zero Prefix
	return p
}
