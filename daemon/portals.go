package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"lunar/conf"
	"lunar/target"
	"lunar/target/tcp"
)

// openPortals opens the portals of all groups, the last step of a start.
func openPortals(d *daemon, cfg *conf.Config, log *slog.Logger) error {
	groups, err := d.portalGroupsOf(cfg, log)
	if err != nil {
		return err
	}
	if err := d.service.DropOthers(socketsOf(groups)); err != nil {
		log.Warn("sockets of portals that are not configured any more may stay open", "err", err)
	}
	for i, g := range groups {
		if err := d.Listen(g); err != nil {
			return portalError(cfg.PortalGroups[i], err)
		}
	}
	return nil
}

// openTCP makes the transport of the server's event threads; it ends with them.
func (d *daemon) openTCP(cfg *conf.Config, log *slog.Logger) (err error) {
	c := tcp.Config{Loops: d.Loops(), Logger: log, Congestion: congestionOf(&cfg.Server), Links: &d.links}
	if d.service != nil {
		c.Keeper = d.service
	}
	d.tcp, err = tcp.Open(c)
	if err == nil {
		d.OnStop(d.tcp.Close)
	}
	return err
}

// socketsOf are the names of the portals whose sockets are kept.
func socketsOf(groups []target.PortalGroup) (names []string) {
	for _, g := range groups {
		for _, p := range g.Portals {
			if !p.Assisted() {
				names = append(names, p.Name())
			}
		}
	}
	return names
}

// portalGroupsOf translates the portal groups, in their order. Their portals are not
// open yet.
func (d *daemon) portalGroupsOf(cfg *conf.Config, log *slog.Logger) (out []target.PortalGroup, err error) {
	addrs, _ := net.InterfaceAddrs()
	for i := range cfg.PortalGroups {
		g := &cfg.PortalGroups[i]
		usable := withoutMissingLoopback(g.Listen, addrs)
		if len(usable) < len(g.Listen) {
			log.Warn("this machine has no IPv6: nothing listens on [::1]", "portal-group", g.Name)
		}
		group := target.PortalGroup{Tag: g.Tag, Redirect: g.Redirect}
		for _, addr := range listenAddresses(usable) {
			group.Portals = append(group.Portals, d.tcp.Portal(addr))
		}
		assisted, err := d.iserPortals(g)
		if err != nil {
			return nil, err
		}
		group.Portals = append(group.Portals, assisted...)
		out = append(out, group)
	}
	return out, nil
}

// withoutMissingLoopback leaves [::1] out where no interface has it, as in many
// containers, unless nothing else is left: the default configuration listens on
// both loopback addresses and is to work there.
func withoutMissingLoopback(portals []netip.AddrPort, addrs []net.Addr) []netip.AddrPort {
	if slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(net.IPv6loopback)
	}) {
		return portals
	}
	rest := slices.DeleteFunc(slices.Clone(portals), func(p netip.AddrPort) bool { return p.Addr() == netip.IPv6Loopback() })
	if len(rest) == 0 {
		return portals
	}
	return rest
}

// listenAddresses joins 0.0.0.0 and [::] of the same port to one dual-stack
// socket, which also works where the kernel has no IPv6.
func listenAddresses(portals []netip.AddrPort) []string {
	var out []string
	for _, p := range portals {
		if p.Addr().IsUnspecified() && slices.Contains(portals, otherFamily(p)) {
			if p.Addr().Is4() {
				out = append(out, fmt.Sprintf(":%d", p.Port()))
			}
			continue
		}
		out = append(out, p.String())
	}
	return out
}

// otherFamily is the same port on all addresses of the other family.
func otherFamily(p netip.AddrPort) netip.AddrPort {
	if p.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv6Unspecified(), p.Port())
	}
	return netip.AddrPortFrom(netip.IPv4Unspecified(), p.Port())
}

// portalError says what to do about a portal that does not open.
func portalError(g conf.PortalGroup, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w%s; stop that, or listen elsewhere (listen of portal-group %s, or --listen)", err, holders(g.Listen), g.Name)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: ports below 1024 need root or CAP_NET_BIND_SERVICE", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: no network interface of this machine has that address now", err)
	}
	return err
}
