package target

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// What a change of the portal groups does with portals of other transports than
// TCP: as with sockets, but that they need nobody to accept.

// takePlaces puts portals that the group has open in place of those of the same
// address.
func (g *portalGroup) takePlaces(portals []Portal) {
	for i, p := range portals {
		if at := slices.IndexFunc(g.Assisted, func(o Portal) bool { return o.Addr() == p.Addr() }); at >= 0 {
			portals[i] = g.Assisted[at]
		}
	}
}

// keeps reports whether a portal of next was there before.
func (c *PortalChange) keeps(e assistedEnd) bool {
	was := c.before[e.tag]
	return was != nil && slices.Contains(was.Assisted, e.portal)
}

// openAssisted opens a portal, which turns everybody away until Commit.
func (c *PortalChange) openAssisted(e assistedEnd) error {
	accept := func(t AssistedTransport) {
		if !c.accepts.Load() {
			t.Close()
			return
		}
		c.server.acceptAssisted(t, e.tag, e.portal)
	}
	err := e.portal.Open(accept)
	if (errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL)) && c.makeAssistedWay(e) {
		err = e.portal.Open(accept)
	}
	return err
}

// makeAssistedWay closes the old portals of the same port that do not stay.
func (c *PortalChange) makeAssistedWay(e assistedEnd) (any bool) {
	for tag, g := range c.before {
		next := c.next[tag]
		for _, p := range g.Assisted {
			old := assistedEnd{tag, p}
			if p.Addr().Port() != e.portal.Addr().Port() || next != nil && slices.Contains(next.Assisted, p) || slices.Contains(c.assisted.closed, old) {
				continue
			}
			p.Close()
			c.assisted.closed = append(c.assisted.closed, old)
			any = true
		}
	}
	return any
}

// rollbackAssisted closes what is new and opens again what had made room for it.
func (c *PortalChange) rollbackAssisted() (errs []error) {
	for _, e := range c.assisted.opened {
		errs = append(errs, e.portal.Close())
	}
	for _, e := range c.assisted.closed {
		if err := e.portal.Open(func(t AssistedTransport) { c.server.acceptAssisted(t, e.tag, e.portal) }); err != nil {
			errs = append(errs, fmt.Errorf("it was closed, and cannot be opened again: %w", err))
		}
	}
	return errs
}

// closeAssisted closes the portals but those that stay.
func (g *portalGroup) closeAssisted(stays func(Portal) bool) {
	for _, p := range g.Assisted {
		if !stays(p) {
			p.Close()
		}
	}
}
