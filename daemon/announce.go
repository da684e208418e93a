package daemon

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"lunar/conf"
	"lunar/target"
)

// announced is how many targets get their lines; the log and discovery name
// the others.
const announced = 8

// announce prints how to connect from Linux, with the addresses that the
// portals really have.
func announce(out io.Writer, cfg *conf.Config, s *target.Server) {
	portals := map[string]string{} // the first portal of each group
	fmt.Fprintf(out, "tgtd is ready. With open-iscsi, as root:\n\n")
	for _, g := range cfg.PortalGroups {
		for i, addr := range s.Addrs(g.Tag) {
			portal := reachable(addr, g.Listen)
			if i == 0 {
				portals[g.Name] = portal
			}
			announceDiscovery(out, cfg, portal)
		}
	}
	for i := range cfg.Targets {
		if i == announced {
			fmt.Fprintf(out, "\n  (and %d more targets)\n", len(cfg.Targets)-announced)
			break
		}
		t := &cfg.Targets[i]
		fmt.Fprintln(out)
		announceTarget(out, cfg, t, portals[t.PortalGroups[0]])
	}
	fmt.Fprintln(out)
}

// announceTarget prints the login of one target, with the CHAP settings of its
// first rule before it.
func announceTarget(out io.Writer, cfg *conf.Config, t *conf.Target, portal string) {
	node := fmt.Sprintf("  iscsiadm -m node -T %s -p %s", t.Name, portal)
	announceCHAP(out, node, "node.session.auth", cfg.AuthGroup(t.Access[0].AuthGroup))
	fmt.Fprintf(out, "%s --login\n", node)
}

// announceDiscovery prints a discovery, which with CHAP needs a record that has the
// settings.
func announceDiscovery(out io.Writer, cfg *conf.Config, portal string) {
	g := cfg.AuthGroup(cfg.Discovery.AuthGroup)
	if g == nil || len(g.CHAP) == 0 {
		fmt.Fprintf(out, "  iscsiadm -m discovery -t sendtargets -p %s\n", portal)
		return
	}
	record := "  iscsiadm -m discoverydb -t sendtargets -p " + portal
	fmt.Fprintf(out, "%s -o new\n", record)
	announceCHAP(out, record, "discovery.sendtargets.auth", g)
	fmt.Fprintf(out, "%s --discover\n", record)
}

// announceCHAP prints the settings for an auth-group, whose secrets are left for
// the administrator to fill in: nothing without CHAP.
func announceCHAP(out io.Writer, record, prefix string, g *conf.AuthGroup) {
	if g == nil || len(g.CHAP) == 0 {
		return
	}
	settings := [][2]string{{"authmethod", "CHAP"}, {"username", shellWord(g.CHAP[0].User)}, {"password", "SECRET"}}
	if g.Mutual != nil {
		settings = append(settings, [2]string{"username_in", shellWord(g.Mutual.User)}, [2]string{"password_in", "SECRET_OF_THE_TARGET"})
	}
	for _, s := range settings {
		fmt.Fprintf(out, "%s -o update -n %s.%s -v %s\n", record, prefix, s[0], s[1])
	}
}

// shellWord puts a user's name in quotes where a shell would take it apart.
func shellWord(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:@", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reachable is how an initiator addresses a socket: in place of all addresses
// one of this machine's. listen tells whether a socket for all IPv6 addresses
// is dual-stack.
func reachable(addr net.Addr, listen []netip.AddrPort) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return addr.String()
	}
	a := tcp.AddrPort().Addr().Unmap()
	if a.IsUnspecified() {
		dual := slices.ContainsFunc(listen, func(p netip.AddrPort) bool { return p.Addr() == netip.IPv4Unspecified() })
		a = machineAddress(a.Is4() || dual)
	}
	return netip.AddrPortFrom(a, tcp.AddrPort().Port()).String()
}

// machineAddress is this machine's first address of a family that others can
// reach, or its loopback address.
func machineAddress(ipv4 bool) netip.Addr {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		ipNet, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		ip, _ := netip.AddrFromSlice(ipNet.IP)
		if ip = ip.Unmap(); ip.IsGlobalUnicast() && ip.Is4() == ipv4 {
			return ip
		}
	}
	if ipv4 {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}
