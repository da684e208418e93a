package target

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Listen opens the portals of a group, all or none, and begins to accept.
// Call it last: an initiator that finds no target yet would give up for good.
func (s *Server) Listen(g PortalGroup) error {
	for _, p := range g.Portals {
		if err := p.Open(); err != nil {
			g.close()
			return err
		}
	}
	s.mu.Lock()
	taken := s.mu.closing || s.mu.groups[g.Tag] != nil
	if !taken {
		s.mu.groups[g.Tag] = &g
		s.directory.changes.Add(1)
	}
	s.mu.Unlock()
	if taken {
		g.close()
		return fmt.Errorf("portal group %d exists already or the server is closing", g.Tag)
	}
	for _, p := range g.Portals {
		s.acceptFrom(p, g.Tag)
	}
	return nil
}

// acceptFrom starts a login for every connection of a portal that gets a place in login.
// Others are turned away at once.
func (s *Server) acceptFrom(p Portal, tag uint16) {
	p.Accept(func(t LoginTransport) {
		wait, ok := s.beginLogin(t, t.Remote().Addr())
		if !ok {
			s.turnAway(t, p)
			return
		}
		go func() {
			defer s.endLogin(t)
			if s.pause(wait) {
				s.login(t, tag, p)
			} else {
				t.Close()
			}
		}()
	})
}

// Addrs returns the addresses that a portal group listens on by TCP.
func (s *Server) Addrs(tag uint16) []net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []net.Addr
	if g := s.mu.groups[tag]; g != nil {
		for _, addr := range g.addrs(false) {
			out = append(out, net.TCPAddrFromAddrPort(addr))
		}
	}
	return out
}

func (g *PortalGroup) close() {
	for _, p := range g.Portals {
		p.Close()
	}
}

// addrs are the addresses that the group listens on, in iSER-assisted mode or not.
func (g *PortalGroup) addrs(assisted bool) (out []netip.AddrPort) {
	for _, p := range g.Portals {
		if p.Assisted() == assisted {
			out = append(out, p.Addr())
		}
	}
	return out
}

// serves reports whether a session that is being made came by a portal of the group,
// which may be nil: by the very one that accepted it, or by an address that another
// portal of the group has now.
func (g *PortalGroup) serves(n *Session) bool {
	return g != nil && (slices.Contains(g.Portals, n.portal) || g.hears(n.local, n.assisted))
}

// hears reports whether a portal of the group is reached at an address, in
// iSER-assisted mode or not.
func (g *PortalGroup) hears(at netip.AddrPort, assisted bool) bool {
	return slices.ContainsFunc(g.addrs(assisted), func(ap netip.AddrPort) bool {
		return ap.Port() == at.Port() && (ap.Addr().IsUnspecified() || ap.Addr().Unmap() == at.Addr().Unmap())
	})
}

// turnAway closes a connection that got no place in login.
func (s *Server) turnAway(t LoginTransport, by Portal) {
	s.logFor(t.Remote().Addr(), false).With("portal", by.Addr().String()).Warn("connection refused: too many are in login, or the server is closing",
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
