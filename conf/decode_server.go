package conf

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// config reads the top level.
func (d *decoder) config(n node, c *Config) {
	d.mapping(n, fields{
		"server":        func(d *decoder, n node) { d.server(n, &c.Server) },
		"cache":         func(d *decoder, n node) { d.cache(n, &c.Cache) },
		"qos":           func(d *decoder, n node) { d.qos(n, &c.QoS) },
		"log":           func(d *decoder, n node) { d.log(n, &c.Log) },
		"portal-groups": func(d *decoder, n node) { d.portalGroups(n, c) },
		"discovery": func(d *decoder, n node) {
			d.mapping(n, fields{"auth": group(&c.Discovery.AuthGroup), "portals": discoveryPortals(&c.Discovery.Portals)})
		},
		"auth-groups": func(d *decoder, n node) { d.authGroups(n, c) },
		"ceph":        func(d *decoder, n node) { d.ceph(n, c) },
		"cluster":     func(d *decoder, n node) { d.cluster(n, c) },
		"volumes":     func(d *decoder, n node) { d.volumes(n, c) },
		"targets":     func(d *decoder, n node) { d.targets(n, c) },
	})
}

func (d *decoder) server(n node, s *Server) {
	d.mapping(n, fields{
		"threads":                  count(&s.Threads, 1024),
		"cpus":                     cpuList(&s.CPUs),
		"buffers-per-thread":       size(&s.BuffersPerThread, 1, 4*MiB, TiB),
		"real-time":                boolean(&s.RealTime),
		"poll":                     oneOf(&s.Poll, PollOff, PollAdaptive, PollAlways),
		"busy-poll":                duration(&s.BusyPoll, 0, time.Millisecond),
		"poll-budget":              percent(&s.PollBudget, 1, 100),
		"batching":                 retired(noBatching),
		"max-delay":                retired(noBatching),
		"congestion":               congestion(&s.Congestion),
		"nodes":                    nodes(&s.Nodes),
		"metrics":                  oneAddress(&s.Metrics),
		"metrics-token-file":       absolutePath(&s.MetricsToken),
		"metrics-certificate-file": absolutePath(&s.MetricsCertificate),
		"metrics-key-file":         absolutePath(&s.MetricsKey),
		"control":                  func(d *decoder, n node) { d.control(n, &s.Control) },
		"sandbox":                  oneOf(&s.Sandbox, SandboxEnforce, SandboxLog, SandboxOff),
		"core-dumps":               boolean(&s.CoreDumps),
		"memory-limit":             memoryLimit(&s.MemoryLimit),
		"iser":                     func(d *decoder, n node) { d.iser(n, &s.ISER) },
		"limits":                   func(d *decoder, n node) { d.limits(n, &s.Limits) },
		"nop":                      func(d *decoder, n node) { d.nop(n, &s.NOP) },
	})
	if !d.given(memoryPerSession) {
		s.Limits.MemoryPerSession = min(s.Limits.MemoryPerSession, s.BuffersPerThread/2)
	}
}

// noBatching is why there are no keys for it any more.
const noBatching = "no such key: all that is ready leaves together; the next release refuses it"

// retired accepts any value of a key of the release before, and warns of it.
func retired(expected string) setter {
	return func(d *decoder, n node) { d.warn(n.path, "a key that has no effect any more", expected) }
}

// nodes accepts auto, a number of equal nodes, or a list with the CPUs of each.
func nodes(to *Nodes) setter {
	const expected = "auto, a number of nodes from 1 to 64, or a list with the CPUs of each such as [\"0-3\", \"4-7\"]"
	return func(d *decoder, n node) {
		if _, list := n.ast.(*ast.SequenceNode); list {
			each(&to.CPUs, cpuList)(d, n)
			if len(to.CPUs) == 0 {
				d.fail(n.path, "an empty list", expected)
			}
			return
		}
		parsed(&to.Count, expected, func(s string) (int, bool) {
			v, err := strconv.Atoi(s)
			return v, s == "auto" || err == nil && v >= 1 && v <= 64
		})(d, n)
	}
}

// congestion accepts auto, system or another name: the kernel knows which there are.
func congestion(to *string) setter {
	return text(to, "auto, system, or a name of the kernel's such as cubic, reno, bbr or dctcp", congestionName.MatchString)
}

// congestionName is shorter than the kernel's TCP_CA_NAME_MAX.
var congestionName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,14}$`)

// oneAddress accepts one socket: an empty address would be two.
func oneAddress(to *netip.AddrPort) setter {
	const expected = "address:port with a literal address, such as 127.0.0.1:9260"
	return parsed(to, expected, func(s string) (netip.AddrPort, bool) {
		p, err := netip.ParseAddrPort(s)
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), err == nil
	})
}

// memoryLimit accepts auto, off or a size.
func memoryLimit(to *Size) setter {
	const least = 64 * MiB
	return parsed(to, "auto, off, or a size of at least 64MiB, such as 1GiB", func(s string) (Size, bool) {
		if s == "auto" {
			return 0, true
		}
		if s == "off" {
			return NoMemoryLimit, true
		}
		v, err := ParseSize(s)
		return v, err == nil && v >= least
	})
}

// absolutePath accepts the path of a file that is read whenever it changes. The value
// of one that does not fit may be a secret that stands at the wrong key, and is not told.
func absolutePath(to *string) setter {
	return func(d *decoder, n node) {
		path, ok := n.scalar()
		if !ok || !filepath.IsAbs(path) || !validPath(path) {
			d.fail(n.path, "something else", "the absolute path of a file")
			return
		}
		*to = path
	}
}

const memoryPerSession = "server.limits.memory-per-session"

func (d *decoder) limits(n node, l *Limits) {
	d.mapping(n, fields{
		"connections-in-login": number(&l.ConnectionsInLogin, 1, 65536),
		"login-timeout":        duration(&l.LoginTimeout, time.Second, 10*time.Minute),
		"sessions":             number(&l.Sessions, 1, 65535),
		"logins-per-address":   count(&l.LoginsPerAddress, 65536),
		"logins-per-network":   count(&l.LoginsPerNetwork, 65536),
		"sessions-per-address": count(&l.SessionsPerAddress, 65535),
		"sessions-per-network": count(&l.SessionsPerNetwork, 65535),
		"known-networks":       each(&l.KnownNetworks, network),
		"queue-depth":          number(&l.QueueDepth, 1, 4096),
		"error-recovery-level": number(&l.ErrorRecoveryLevel, 0, 2),
		"max-connections":      number(&l.MaxConnections, 1, 64),
		"memory-per-session":   size(&l.MemoryPerSession, 1, MiB, TiB),
	})
}

func (d *decoder) nop(n node, nop *NOP) {
	d.mapping(n, fields{
		"interval": duration(&nop.Interval, 0, time.Hour),
		"timeout":  duration(&nop.Timeout, time.Second, time.Hour),
	})
}

func (d *decoder) log(n node, l *Log) {
	d.mapping(n, fields{
		"level":  oneOf(&l.Level, "debug", "info", "warn", "error"),
		"format": oneOf(&l.Format, "text", "json"),
	})
}

func (d *decoder) portalGroups(n node, c *Config) {
	d.named(n, naming{objectName.MatchString, wantObjectName, aMappingOrNothing}, func(name string, n node) {
		g := PortalGroup{Name: name, ALUA: ALUA{State: "optimized"}}
		tag := 1
		d.mapping(n, fields{
			"tag":         number(&tag, 1, 65535), // SCSI's identifiers of ports begin at 1
			"alua":        func(d *decoder, n node) { d.alua(n, &g.ALUA) },
			"listen":      func(d *decoder, n node) { d.listens(n, &g) },
			"redirect":    redirect(&g.Redirect),
			"listen-iser": func(d *decoder, n node) { d.listensISER(n, &g) },
		})
		if !d.has(n, "listen") && !d.has(n, "listen-iser") {
			g.Listen, _ = ParseListen(defaultListen)
		}
		g.Tag = uint16(tag)
		c.PortalGroups = append(c.PortalGroups, g)
	})
}

// listensISER reads a listen-iser list. An address of both families gives two
// portals.
func (d *decoder) listensISER(n node, g *PortalGroup) {
	d.list(n, func(e node) {
		var portals []ISERPortal
		parsed(&portals, wantListenISER, ParseListenISER)(d, e)
		g.ListenISER = append(g.ListenISER, portals...)
	})
	if len(g.ListenISER) == 0 && !n.missing() && len(d.problems) == 0 {
		d.fail(n.path, "an empty list", "at least one address or interface; leave the key out for none")
	}
}

func (d *decoder) iser(n node, i *ISER) {
	d.mapping(n, fields{
		"immediate-data":      size(&i.ImmediateData, KiB, 0, 8*KiB),
		"remote-invalidation": boolean(&i.RemoteInvalidation),
	})
}

func (d *decoder) alua(n node, a *ALUA) {
	d.mapping(n, fields{
		"state":     oneOf(&a.State, "optimized", "non-optimized", "standby", "unavailable", "offline"),
		"preferred": boolean(&a.Preferred),
		"explicit":  boolean(&a.Explicit),
	})
}

func (d *decoder) listens(n node, g *PortalGroup) {
	d.list(n, func(e node) {
		var portals []netip.AddrPort
		parsed(&portals, wantListen, ParseListen)(d, e)
		for _, p := range portals {
			d.at[listenPath(n.path, p)] = e.place()
		}
		g.Listen = append(g.Listen, portals...)
	})
	if len(g.Listen) == 0 && !n.missing() && len(d.problems) == 0 {
		d.fail(n.path, "an empty list", "at least one address:port; leave the key out for "+defaultListen)
	}
}

// listenPath is where the position of a portal is remembered: lists are
// flattened, so that an index would not find it.
func listenPath(list string, p netip.AddrPort) string { return fmt.Sprintf("%s[%v]", list, p) }

// discoveryPortals reads which portals are told.
func discoveryPortals(to *string) setter {
	return parsed(to, "one of own, all", func(s string) (string, bool) {
		if s == ownPortals {
			return "", true
		}
		return s, s == AllPortals
	})
}
