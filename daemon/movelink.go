package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"lunar/control"
	"lunar/internal/bulk"
	"lunar/internal/bulk/keyed"
	bulkrdma "lunar/internal/bulk/rdma"
	"lunar/internal/bulk/tcp"
)

// dialMove connects to who receives at an address.
func dialMove(ctx context.Context, address string, key keyed.Key) (bulk.SourceLink, error) {
	host, over := strings.CutPrefix(address, control.MoveOverRDMA)
	if !over {
		return tcp.Dial(ctx, address, key)
	}
	to, err := rdmaAddress(host)
	if err != nil {
		return nil, err
	}
	devices, err := openRDMA()
	if err != nil {
		return nil, err
	}
	return bulkrdma.Dial(ctx, devices, to, key)
}

// moveListener awaits who sends.
type moveListener interface {
	Address() string
	Close() error
}

// listenMove awaits who sends at an address. accept returns the next one's link.
func listenMove(address string, key keyed.Key) (l moveListener, accept func(context.Context) (bulk.SinkLink, error), err error) {
	host, over := strings.CutPrefix(address, control.MoveOverRDMA)
	if !over {
		l, err := tcp.Listen(address, key)
		return l, func(ctx context.Context) (bulk.SinkLink, error) { return l.Accept(ctx) }, err
	}
	at, err := rdmaAddress(host)
	if err != nil {
		return nil, nil, err
	}
	devices, err := openRDMA()
	if err != nil {
		return nil, nil, err
	}
	r, err := bulkrdma.Listen(devices, at, key)
	return r, func(ctx context.Context) (bulk.SinkLink, error) { return r.Accept(ctx) }, err
}

// rdmaAddress is what a host and port mean to a connection manager. Without a host they are
// all addresses of IPv4.
func rdmaAddress(text string) (netip.AddrPort, error) {
	a, err := net.ResolveTCPAddr("tcp", text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s%s: %w", control.MoveOverRDMA, text, err)
	}
	if len(a.IP) == 0 {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(a.Port)), nil
	}
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), nil
}
