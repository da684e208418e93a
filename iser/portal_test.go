package iser_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs/fake"
	"lunar/target"
)

// offered opens a connection to a portal and asks for the targets.
func (w *world) offered(portal netip.AddrPort) (string, error) {
	wire, err := isertest.Dial(w.client, isertest.Options{Portal: portal})
	if err != nil {
		return "", err
	}
	defer wire.Close()
	c := initiator.NewConn(wire)
	if err := c.Login(initiator.Options{ISID: isid(9)}); err != nil {
		return "", err
	}
	found, err := c.SendTargets("All")
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("found %v, %w", found, err)
	}
	return strings.Join(found[0].Addresses, " "), nil
}

// Portals over RDMA change as sockets do: those that stay are not touched, sessions
// that came by one that goes are asked to leave, and a change that fails changes
// nothing.
func TestPortalsChange(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{})
	listen := []string{w.Addrs(1)[0].String()}
	second := netip.AddrPortFrom(portalAddr.Addr(), 3261)
	group := func(addrs ...netip.AddrPort) target.PortalGroup {
		g := target.PortalGroup{Tag: 1, Portals: []target.Portal{w.tcp.Portal("127.0.0.1:0")}}
		for _, a := range addrs {
			g.Portals = append(g.Portals, w.transport.Portal(a, 1))
		}
		return g
	}
	commit := func(groups ...target.PortalGroup) int {
		t.Helper()
		change, err := w.PreparePortals(groups)
		w.check(err)
		return change.Commit()
	}
	offers := func(at netip.AddrPort, want string) {
		t.Helper()
		if found, err := w.offered(at); err != nil || found != want {
			t.Errorf("%s offers %q, %v; expected %q", at, found, err, want)
		}
	}
	silent := func(at netip.AddrPort) {
		t.Helper()
		eventually.Holds(t, at.String()+" answers no more", func() bool { _, err := w.offered(at); return err != nil })
	}
	if n := commit(group(portalAddr, second)); n != 0 {
		t.Errorf("%d sessions are to end", n)
	}
	offers(second, "10.0.0.1:3260,1 10.0.0.1:3261,1")
	if err := c.Ready(0); err != nil {
		t.Errorf("the session of the portal that stayed: %v", err)
	}
	missing := netip.MustParseAddrPort("10.9.9.9:3260")
	if _, err := w.PreparePortals([]target.PortalGroup{group(second, netip.AddrPortFrom(portalAddr.Addr(), 3262), missing)}); err == nil || !strings.Contains(err.Error(), missing.String()) {
		t.Errorf("found %v, expected the portal that cannot be opened", err)
	}
	offers(portalAddr, "10.0.0.1:3260,1 10.0.0.1:3261,1")
	silent(netip.AddrPortFrom(portalAddr.Addr(), 3262))
	// The same address in another group: the old one makes room, and comes back
	// when what follows fails.
	other := target.PortalGroup{Tag: 2, Portals: []target.Portal{w.transport.Portal(portalAddr, 2), w.transport.Portal(missing, 2)}}
	if _, err := w.PreparePortals([]target.PortalGroup{group(second), other}); err == nil {
		t.Error("a portal of no device was opened")
	}
	offers(portalAddr, "10.0.0.1:3260,1 10.0.0.1:3261,1")
	if n := commit(group(second)); n != 1 {
		t.Errorf("%d sessions are to end, expected that of the portal that is gone", n)
	}
	p, err := c.Step(30 * time.Second)
	if err != nil || p.Opcode() != initiator.OpAsync || p.BHS[36] != 1 {
		t.Errorf("found %v, %v; expected a request to log out", p, err)
	}
	silent(portalAddr)
	offers(second, "10.0.0.1:3261,1")
	if n := commit(group()); n != 0 || w.Addrs(1)[0].String() != listen[0] {
		t.Errorf("%d sessions are to end; TCP is served at %v, was at %v", n, w.Addrs(1), listen)
	}
	silent(second)
}

// Whoever comes by a new portal before the change is made is turned away.
func TestPortalBeforeItsTime(t *testing.T) {
	w := newWorld(t, options{fabric: fake.Options{Seed: 3}})
	second := netip.AddrPortFrom(portalAddr.Addr(), 3261)
	g := target.PortalGroup{Tag: 1, Portals: []target.Portal{w.tcp.Portal("127.0.0.1:0"), w.transport.Portal(portalAddr, 1), w.transport.Portal(second, 1)}}
	change, err := w.PreparePortals([]target.PortalGroup{g})
	w.check(err)
	if found, err := w.offered(second); err == nil {
		t.Errorf("offers %q before the change is made", found)
	}
	w.check(change.Rollback())
	eventually.Finds(t, "connections", 0, w.connections)
	if _, err := w.offered(portalAddr); err != nil {
		t.Error(err)
	}
}
