package target

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// portalGroup is a PortalGroup with its open sockets, one for each of Listen. It
// does not change: the server gets another one.
type portalGroup struct {
	PortalGroup
	listeners []net.Listener
}

// Listen opens a portal group's sockets, all or none, and begins to accept.
// Call it last: an initiator that finds no target yet would give up for good.
func (s *Server) Listen(config PortalGroup) error {
	g := &portalGroup{PortalGroup: config}
	for _, addr := range config.Listen {
		l, err := s.listen(addr)
		if err != nil {
			g.close()
			return err
		}
		g.listeners = append(g.listeners, l)
	}
	for _, p := range config.Assisted {
		if err := p.Open(func(t AssistedTransport) { s.acceptAssisted(t, config.Tag, p) }); err != nil {
			g.close()
			return err
		}
	}
	s.mu.Lock()
	taken := s.mu.closing || s.mu.groups[config.Tag] != nil
	if !taken {
		s.mu.groups[config.Tag] = g
		s.directory.changes.Add(1)
	}
	s.mu.Unlock()
	if taken {
		g.close()
		return fmt.Errorf("portal group %d exists already or the server is closing", config.Tag)
	}
	for _, l := range g.listeners {
		s.running.Go(func() { s.accept(l, config.Tag) })
	}
	return nil
}

// listen opens the socket of a portal. Those that it accepts inherit its congestion
// control.
func (s *Server) listen(addr string) (net.Listener, error) {
	var c net.ListenConfig
	if name := s.congestionName(); name != "" {
		c.Control = func(_, _ string, raw syscall.RawConn) error { return congest(raw, name) }
	}
	l, err := c.Listen(context.Background(), network(addr), addr)
	if err != nil {
		return nil, fmt.Errorf("portal %s: %w", addr, err)
	}
	return l, nil
}

// availableCongestion lists the congestion controls that are loaded, which are those
// that a process without privileges may use or fewer.
const availableCongestion = "/proc/sys/net/ipv4/tcp_available_congestion_control"

func setCongestion(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if err == nil {
		return nil
	}
	there, _ := os.ReadFile(availableCongestion) // for the message alone
	return fmt.Errorf("congestion control %q: %w; expected one that the kernel has, such as %s", name, err, strings.Join(strings.Fields(string(there)), ", "))
}

// network keeps a literal address to its own family: 0.0.0.0 is IPv4 alone and
// [::] IPv6 alone, which net.Listen would both make dual stack.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	literal, perr := netip.ParseAddr(host)
	switch {
	case err != nil || perr != nil:
		return "tcp"
	case literal.Is4():
		return "tcp4"
	}
	return "tcp6"
}

// Addrs returns the addresses that a portal group listens on.
func (s *Server) Addrs(tag uint16) []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []net.Addr
	if g := s.mu.groups[tag]; g != nil {
		for _, l := range g.listeners {
			out = append(out, l.Addr())
		}
	}
	return out
}

func (g *portalGroup) close() {
	for _, l := range g.listeners {
		l.Close()
	}
	g.closeAssisted(func(Portal) bool { return false })
}

// accept starts a login for every connection that gets a place in login. Others
// are turned away at once.
func (s *Server) accept(l net.Listener, tag uint16) {
	refused := rareLog{most: 1}
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, say: others may end soon
			refused.log(s.log, slog.LevelWarn, "accept failed", "portal", l.Addr().String(), "error", err)
			time.Sleep(50 * time.Millisecond)
		default:
			s.beginTCP(conn.(*net.TCPConn), l, tag)
		}
	}
}

// beginTCP starts the login of a connection, or closes it.
func (s *Server) beginTCP(conn *net.TCPConn, l net.Listener, tag uint16) {
	t := &tcpLogin{conn: conn}
	wait, ok := s.beginLogin(t, t.Remote().Addr())
	if !ok {
		s.turnedAway(t, "portal", l.Addr().String())
		return
	}
	s.running.Go(func() {
		defer s.endLogin(t)
		if s.pause(wait) {
			s.login(t, tag, l)
		} else {
			t.Close()
		}
	})
}

// turnedAway closes a connection that got no place in login.
func (s *Server) turnedAway(t LoginTransport, where ...any) {
	s.logFor(t.Remote().Addr(), false).With(where...).Warn("connection refused: too many are in login, or the server is closing",
		"address", t.Remote().String(), "limit", s.settings.Load().Limits.LoginConnections)
	t.Close()
}

// pause waits, and reports whether the server is to go on.
func (s *Server) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-late.C:
		return true
	case <-s.closing:
		return false
	}
}

// closePortals stops accepting and breaks off logins.
func (s *Server) closePortals() {
	s.mu.Lock()
	if !s.mu.closing {
		close(s.closing)
	}
	s.mu.closing = true
	groups := slices.Collect(maps.Values(s.mu.groups))
	for conn := range s.mu.admission.logins.Keys() {
		conn.Close()
	}
	s.mu.Unlock()
	for _, g := range groups { // not under the lock, which their accepting may be waiting for
		g.close()
	}
}

// addrPort is a socket address with IPv4-mapped addresses unmapped.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
