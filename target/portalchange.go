package target

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"syscall"
)

// PortalChange is a change of the portal groups that is ready to be made: all
// portals are open, and nobody is accepted by the new ones yet. Commit or
// Rollback ends it; meanwhile there must be no other.
type PortalChange struct {
	server *Server
	before map[uint16]*PortalGroup
	next   map[uint16]*PortalGroup
	opened []groupPortal // that are new
	closed []groupPortal // old ones that were in the way of new ones
}

// groupPortal is a portal of the group with a tag.
type groupPortal struct {
	Portal
	tag uint16
}

// PreparePortals opens what groups, which are to take the place of all that
// there are, have and the server has not. A portal that has to make room for a
// new one, such as all addresses of a port for one of them, is closed before;
// who comes in that moment is refused and tries again. After an error all is as
// it was, and the error is that of the portal that cannot be opened. One that there
// is takes the place of a new one of its group, transport and name.
func (s *Server) PreparePortals(groups []PortalGroup) (*PortalChange, error) {
	c := &PortalChange{server: s, before: s.portalGroups(), next: make(map[uint16]*PortalGroup)}
	for _, g := range groups {
		g.Portals = slices.Clone(g.Portals)
		if was := c.before[g.Tag]; was != nil {
			was.takePlaces(g.Portals)
		}
		c.next[g.Tag] = &g
	}
	for _, g := range groups {
		for _, p := range c.next[g.Tag].Portals {
			if err := c.open(groupPortal{p, g.Tag}); err != nil {
				return nil, errors.Join(err, c.Rollback())
			}
		}
	}
	return c, nil
}

func (s *Server) portalGroups() map[uint16]*PortalGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.groups)
}

// takePlaces puts portals that the group has open in place of those of the same name.
func (g *PortalGroup) takePlaces(portals []Portal) {
	for i, p := range portals {
		same := func(o Portal) bool { return o.Assisted() == p.Assisted() && o.Name() == p.Name() }
		if at := slices.IndexFunc(g.Portals, same); at >= 0 {
			portals[i] = g.Portals[at]
		}
	}
}

// has reports whether a portal is one of a group, which may be nil.
func (g *PortalGroup) has(p Portal) bool { return g != nil && slices.Contains(g.Portals, p) }

// open opens a portal that was not there before.
func (c *PortalChange) open(p groupPortal) error {
	if c.before[p.tag].has(p.Portal) {
		return nil
	}
	err := p.Open()
	inTheWay := errors.Is(err, syscall.EADDRINUSE) || p.Assisted() && errors.Is(err, syscall.EADDRNOTAVAIL)
	if inTheWay && c.makeWay(p) {
		err = p.Open()
	}
	if err == nil {
		c.opened = append(c.opened, p)
	}
	return err
}

// makeWay closes the old portals of the same transport and port that do not stay.
func (c *PortalChange) makeWay(p groupPortal) (any bool) {
	for tag, g := range c.before {
		for _, o := range g.Portals {
			old := groupPortal{o, tag}
			if o.Assisted() != p.Assisted() || o.Addr().Port() != p.Addr().Port() || c.next[tag].has(o) || slices.Contains(c.closed, old) {
				continue
			}
			o.Close()
			c.closed = append(c.closed, old)
			any = true
		}
	}
	return any
}

// Rollback closes what is new and opens again what had made room for it. An
// error tells which portals could not be opened again.
func (c *PortalChange) Rollback() error {
	var errs []error
	for _, p := range c.opened {
		errs = append(errs, p.Close())
	}
	for _, p := range c.closed {
		if err := p.Open(); err != nil {
			errs = append(errs, fmt.Errorf("it was closed, and cannot be opened again: %w", err))
			continue
		}
		c.server.reopened(p)
	}
	return errors.Join(errs...)
}

// reopened goes on to accept by a portal that was closed.
func (s *Server) reopened(p groupPortal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing || !s.mu.groups[p.tag].has(p.Portal) {
		p.Close()
		return
	}
	s.directory.changes.Add(1) // its port may be another
	s.acceptFrom(p.Portal, p.tag)
}

// Commit begins to accept by the new portals and closes those that are not
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
		for _, p := range c.opened {
			s.acceptFrom(p.Portal, p.tag)
		}
	}
	s.mu.drains = slices.DeleteFunc(s.mu.drains, func(d Drain) bool { return c.next[d.Tag] == nil })
	s.mu.Unlock()
	for tag, g := range c.before {
		for _, p := range g.Portals {
			if !c.next[tag].has(p) {
				p.Close()
			}
		}
	}
	return s.requestLogouts(c.stranded(), errDiverted)
}

// stranded returns the sessions that came by a portal that there was before and
// is not there now, or by a group that has begun to redirect.
func (c *PortalChange) stranded() []*Session {
	return slices.DeleteFunc(c.server.sessions(), func(n *Session) bool {
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
