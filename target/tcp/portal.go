package tcp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"lunar/internal/loglimit"
	"lunar/target"
)

// portal is a listening socket: a target.Portal.
type portal struct {
	name       string // host:port as configured
	log        *slog.Logger
	congestion *congestion
	scratches  scratches
	keeper     Keeper
	listener   atomic.Pointer[net.TCPListener] // nil before Open
}

// Portal returns one that listens on host:port; an empty host is every address, IPv4
// and IPv6.
func (t *Transport) Portal(addr string) target.Portal {
	return &portal{name: addr, log: t.log, congestion: &t.congestion, scratches: t.scratches, keeper: t.keeper}
}

// Name implements target.Portal.
func (p *portal) Name() string { return p.name }

// Assisted implements target.Portal.
func (*portal) Assisted() bool { return false }

// Addr implements target.Portal.
func (p *portal) Addr() netip.AddrPort {
	if l := p.listener.Load(); l != nil {
		return addrPort(l.Addr())
	}
	host, port, _ := net.SplitHostPort(p.name)
	addr, _ := netip.ParseAddr(host)
	number, _ := strconv.ParseUint(port, 10, 16)
	return netip.AddrPortFrom(addr, uint16(number)) // of a name, as far as it is known
}

// Open implements target.Portal.
func (p *portal) Open() error {
	l, err := p.inherit()
	if l == nil && err == nil {
		if l, err = p.congestion.listen(p.name); err == nil {
			p.keep(l)
		}
	}
	if err != nil {
		return fmt.Errorf("portal %s: %w", p.name, err)
	}
	p.listener.Store(l)
	return nil
}

// Accept implements target.Portal. Connections that came after Open have waited for it.
func (p *portal) Accept(accept func(target.LoginTransport)) {
	go p.accept(p.listener.Load(), accept)
}

// accept hands on every connection until the socket is closed.
func (p *portal) accept(l *net.TCPListener, accept func(target.LoginTransport)) {
	failed := loglimit.Rare{Most: 1}
	for {
		conn, err := l.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, say: others may end soon
			failed.Log(p.log, slog.LevelWarn, "accept failed", "portal", l.Addr().String(), "error", err)
			time.Sleep(50 * time.Millisecond)
		default:
			accept(&loginTransport{conn: conn, scratches: p.scratches, congestion: p.congestion})
		}
	}
}

// Close implements target.Portal.
func (p *portal) Close() error {
	l := p.listener.Load()
	if l == nil {
		return nil
	}
	err := p.congestion.close(l)
	if p.keeper != nil {
		err = errors.Join(err, p.keeper.Drop(p.name))
	}
	return err
}
