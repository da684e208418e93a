package tcp

import (
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/target"
)

// SetClass implements target.Classed.
func (m *mover) SetClass(c target.NetworkClass) (err error) {
	if c.DSCP != m.dscp {
		err = mark(m.fd, c.DSCP)
		m.dscp = c.DSCP
	}
	if c.Network != nil || m.gov != nil {
		m.govern(c)
	}
	return err
}

// Governance implements target.Classed.
func (m *mover) Governance() target.Governance {
	name, _ := unix.GetsockoptString(m.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION) // unknown, if it is not told
	told := target.Governance{Congestion: name}
	if m.gov != nil {
		m.gov.tell(&told)
	}
	return told
}

// mark has a socket send with a DSCP (RFC 2474): the upper six bits of IPv4's type of
// service and of IPv6's traffic class. The kernel keeps the other two, which ECN has.
func mark(fd int, dscp uint8) error {
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("DSCP %d: family of the socket: %w", dscp, err)
	}
	field := int(dscp) << 2
	if family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, field); err != nil {
			return fmt.Errorf("DSCP %d: IPV6_TCLASS: %w", dscp, err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, field); err != nil && family == unix.AF_INET {
		return fmt.Errorf("DSCP %d: IP_TOS: %w", dscp, err)
	}
	return nil // a socket of IPv6 has IP_TOS for peers of IPv4
}
