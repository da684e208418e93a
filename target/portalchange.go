package target

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
)

// PortalChange is a change of the portal groups that is ready to be made: all
// its sockets are open, and nobody is accepted by the new ones yet. Commit or
// Rollback ends it; meanwhile there must be no other.
type PortalChange struct {
	server *Server
	before map[uint16]*portalGroup
	next   map[uint16]*portalGroup
	opened []socket // that are new
	kept   []socket
	closed []socket // old ones that were in the way of new ones

	assisted struct{ opened, closed []assistedEnd } // the same of other transports
	accepts  *atomic.Bool                           // by the new ones of those
}

// assistedEnd is a portal of a group over another transport than TCP.
type assistedEnd struct {
	tag    uint16
	portal Portal
}

// socket is a portal of a group.
type socket struct {
	tag  uint16
	addr string // as configured
	l    net.Listener
}

// PreparePortals opens what groups, which are to take the place of all that
// there are, have and the server has not. A socket that has to make room for a
// new one, such as all addresses of a port for one of them, is closed before;
// who comes in that moment is refused and tries again. After an error all is as
// it was, and the error is that of the socket that cannot be opened. Portals of
// other transports than TCP are told apart by their addresses in the same way:
// one that there is takes the place of a new one of its address.
func (s *Server) PreparePortals(groups []PortalGroup) (*PortalChange, error) {
	c := &PortalChange{server: s, before: s.portalGroups(), next: make(map[uint16]*portalGroup), accepts: new(atomic.Bool)}
	old := c.sockets()
	for _, config := range groups {
		g := &portalGroup{PortalGroup: config}
		g.Assisted = slices.Clone(config.Assisted)
		if was := c.before[config.Tag]; was != nil {
			was.takePlaces(g.Assisted)
		}
		c.next[config.Tag] = g
		for _, addr := range config.Listen {
			if i := slices.IndexFunc(old, func(o socket) bool { return o.tag == config.Tag && o.addr == addr }); i >= 0 {
				c.kept = append(c.kept, old[i])
			}
		}
	}
	for _, g := range groups {
		if err := c.open(c.next[g.Tag], old); err != nil {
			return nil, errors.Join(err, c.Rollback())
		}
	}
	return c, nil
}

func (s *Server) portalGroups() map[uint16]*portalGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.groups)
}

// open opens what a group has that is new.
func (c *PortalChange) open(g *portalGroup, old []socket) error {
	for _, addr := range g.Listen {
		l, err := c.find(g.Tag, addr, old)
		if err != nil {
			return err
		}
		g.listeners = append(g.listeners, l)
	}
	for _, p := range g.Assisted {
		if c.keeps(assistedEnd{g.Tag, p}) {
			continue
		}
		if err := c.openAssisted(assistedEnd{g.Tag, p}); err != nil {
			return err
		}
		c.assisted.opened = append(c.assisted.opened, assistedEnd{g.Tag, p})
	}
	return nil
}

// sockets returns the portals before the change.
func (c *PortalChange) sockets() (all []socket) {
	for tag, g := range c.before {
		for i, l := range g.listeners {
			all = append(all, socket{tag, g.Listen[i], l})
		}
	}
	return all
}

// find returns the socket of a portal: the one that it had, or a new one.
func (c *PortalChange) find(tag uint16, addr string, old []socket) (net.Listener, error) {
	for _, k := range c.kept {
		if k.tag == tag && k.addr == addr {
			return k.l, nil
		}
	}
	l, err := c.server.listen(addr)
	if errors.Is(err, syscall.EADDRINUSE) && c.makeWay(addr, old) {
		l, err = c.server.listen(addr)
	}
	if err != nil {
		return nil, err
	}
	c.opened = append(c.opened, socket{tag, addr, l})
	return l, nil
}

// makeWay closes the old sockets of the same port that do not stay.
func (c *PortalChange) makeWay(addr string, old []socket) (any bool) {
	_, port, _ := net.SplitHostPort(addr)
	for _, o := range old {
		_, its, _ := net.SplitHostPort(o.l.Addr().String())
		if its != port || slices.Contains(c.kept, o) || slices.Contains(c.closed, o) {
			continue
		}
		o.l.Close()
		c.closed = append(c.closed, o)
		any = true
	}
	return any
}

// Rollback closes what is new and opens again what had made room for it. An
// error tells which portals could not be opened again.
func (c *PortalChange) Rollback() error {
	for _, n := range c.opened {
		n.l.Close()
	}
	var errs []error
	errs = append(errs, c.rollbackAssisted()...)
	for _, o := range c.closed {
		l, err := c.server.listen(o.addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("it was closed, and cannot be opened again: %w", err))
			continue
		}
		c.server.reopened(o, l)
	}
	return errors.Join(errs...)
}

// reopened puts a socket in place of one that was closed.
func (s *Server) reopened(o socket, l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.mu.groups[o.tag]
	if s.mu.closing || g == nil {
		l.Close()
		return
	}
	fresh := &portalGroup{PortalGroup: g.PortalGroup, listeners: slices.Clone(g.listeners)}
	fresh.listeners[slices.Index(g.Listen, o.addr)] = l
	s.mu.groups[o.tag] = fresh
	s.directory.changes.Add(1)
	s.running.Go(func() { s.accept(l, o.tag) })
}

// Commit begins to accept by the new sockets and closes those that are not
// wanted any more. The initiators of sessions that came by a portal that is gone,
// or that redirects now, are asked to log out, and disconnected if they do not:
// dismissed is how many. Who is not redirected and knows no other portal will
// not come back.
func (c *PortalChange) Commit() (dismissed int) {
	s := c.server
	s.mu.Lock()
	s.mu.groups = c.next
	s.directory.changes.Add(1)
	if s.mu.closing {
		for _, g := range c.next {
			g.close()
		}
	} else {
		for _, n := range c.opened {
			s.running.Go(func() { s.accept(n.l, n.tag) })
		}
		c.accepts.Store(true)
	}
	s.mu.drains = slices.DeleteFunc(s.mu.drains, func(d Drain) bool { return c.next[d.Tag] == nil })
	s.mu.Unlock()
	for tag, g := range c.before {
		next := c.next[tag]
		if next == nil {
			g.close()
			continue
		}
		for _, l := range g.listeners {
			if !slices.Contains(next.listeners, l) {
				l.Close()
			}
		}
		g.closeAssisted(func(p Portal) bool { return slices.Contains(next.Assisted, p) })
	}
	return s.dismiss(c.stranded(), errDiverted)
}

// stranded returns the sessions that came by a portal that there was before and
// is not there now, or by a group that has begun to redirect.
func (c *PortalChange) stranded() []*Session {
	return slices.DeleteFunc(c.server.allSessions(), func(n *Session) bool {
		old, now := c.before[n.portalGroup], c.next[n.portalGroup]
		switch {
		case old == nil || n.target == nil:
			return true
		case now == nil:
			return false
		case now.Redirect != "" && now.Redirect != old.Redirect:
			return false
		}
		return !n.cameBy(func(_ uint16, local netip.AddrPort) bool {
			return old.hears(local, n.assisted) && !now.hears(local, n.assisted)
		})
	})
}

// serves reports whether a session that is being made came by a portal of the group,
// which may be nil: by the very one that accepted it, or by an address that another
// portal of the group has now.
func (g *portalGroup) serves(n *Session) bool {
	if g == nil {
		return false
	}
	l, _ := n.portal.(net.Listener)
	p, _ := n.portal.(Portal)
	return slices.Contains(g.listeners, l) || slices.Contains(g.Assisted, p) || g.hears(n.local, n.assisted)
}

// hears reports whether a portal of the group is reached at an address, by one
// transport.
func (g *portalGroup) hears(at netip.AddrPort, assisted bool) bool {
	return slices.ContainsFunc(g.ends(assisted), func(ap netip.AddrPort) bool {
		return ap.Port() == at.Port() && (ap.Addr().IsUnspecified() || ap.Addr().Unmap() == at.Addr().Unmap())
	})
}
