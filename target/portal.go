package target

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// accept starts a login for every connection, as many at a time as the limit
// says. Who comes beyond it is turned away at once, unless another has been at
// it for so long that it hardly means to log in: that one makes room.
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
		case !s.beginLogin(conn):
			refused.log(s.log, slog.LevelWarn, "connection refused: too many are in login", "portal", l.Addr().String(),
				"address", conn.RemoteAddr().String(), "limit", s.settings.Load().Limits.LoginConnections)
			conn.Close()
		default:
			s.running.Go(func() {
				defer s.endLogin(conn)
				s.login(&tcpLogin{conn: conn.(*net.TCPConn)}, tag, l)
			})
		}
	}
}

func (s *Server) beginLogin(conn io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing || len(s.mu.loggingIn) >= s.settings.Load().Limits.LoginConnections && !s.makeRoom() {
		return false
	}
	s.mu.loggingIn[conn] = time.Now()
	return true
}

// loginGrace is how long a login may take although others are turned away for
// it: many times what one takes, far less than half-open connections hold on.
const loginGrace = time.Second

// makeRoom breaks off the oldest login if it has had its grace. The caller
// holds mu.
func (s *Server) makeRoom() bool {
	var oldest io.Closer
	for conn, since := range s.mu.loggingIn {
		if oldest == nil || since.Before(s.mu.loggingIn[oldest]) {
			oldest = conn
		}
	}
	if oldest == nil || time.Since(s.mu.loggingIn[oldest]) < loginGrace {
		return false
	}
	oldest.Close()
	delete(s.mu.loggingIn, oldest)
	return true
}

func (s *Server) endLogin(conn io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.loggingIn, conn)
}

// closePortals stops accepting and breaks off logins.
func (s *Server) closePortals() {
	s.mu.Lock()
	s.mu.closing = true
	groups := slices.Collect(maps.Values(s.mu.groups))
	for conn := range s.mu.loggingIn {
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
