package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lunar/conf"
	"lunar/internal/trust"
)

// checkPrivileges names what the configuration needs beyond the right to use its files
// and devices.
// root is "/" but in tests.
func checkPrivileges(cfg *conf.Config, root string) (notes []string) {
	need := func(what, how string) { notes = append(notes, "privileges: "+what+" needs "+how) }
	if ports := lowPorts(cfg, numberIn(root, "proc/sys/net/ipv4/ip_unprivileged_port_start", 1024)); len(ports) > 0 {
		need(strings.Join(ports, ", "), "CAP_NET_BIND_SERVICE, or root")
	}
	name, allowed := cfg.Server.Congestion, wordsIn(root, "proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if name != conf.SystemCongestion && name != conf.AutoCongestion && len(allowed) > 0 && !slices.Contains(allowed, name) {
		need("server.congestion: "+name, "CAP_NET_ADMIN, or the name in net.ipv4.tcp_allowed_congestion_control")
	}
	if slices.ContainsFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return len(g.ListenISER) > 0 }) {
		need("listen-iser", "/dev/infiniband and RLIMIT_MEMLOCK for buffers and cache, or CAP_IPC_LOCK")
	}
	if cfg.Server.RealTime {
		need("server.real-time", "RLIMIT_RTPRIO of 1 (LimitRTPRIO=1 in the service), or CAP_SYS_NICE")
	}
	return notes
}

// lowPorts are the sockets below the first port that everybody may bind.
func lowPorts(cfg *conf.Config, first int) (all []string) {
	sockets := []netip.AddrPort{cfg.Server.Metrics, cfg.Server.Control.Listen}
	for _, g := range cfg.PortalGroups {
		sockets = append(sockets, g.Listen...)
	}
	for _, s := range sockets {
		if s.IsValid() && s.Port() != 0 && int(s.Port()) < first {
			all = append(all, s.String())
		}
	}
	return all
}

func wordsIn(root, path string) []string {
	text, _ := os.ReadFile(filepath.Join(root, path)) // a container without it: nothing is known
	return strings.Fields(string(text))
}

func numberIn(root, path string, missing int) int {
	if words := wordsIn(root, path); len(words) == 1 {
		if n, err := strconv.Atoi(words[0]); err == nil {
			return n
		}
	}
	return missing
}

// doubtful tells of files besides the configuration and the state directory that others
// may change. Paths are resolved.
func doubtful(cfg *conf.Config) (notes []string) {
	look := func(key, path string) {
		if path == "" {
			return
		}
		tell := func(what fmt.Stringer) { notes = append(notes, key+": "+what.String()) }
		if err := trust.Check(path, func(d trust.Doubt) { tell(d) }); err != nil && !errors.Is(err, fs.ErrPermission) {
			notes = append(notes, key+": "+err.Error())
		}
	}
	s := &cfg.Server
	look("server.metrics-token-file", s.MetricsToken)
	look("server.metrics-certificate-file", s.MetricsCertificate)
	look("server.metrics-key-file", s.MetricsKey)
	look("server.control.token-file", s.Control.Tokens)
	look("server.control.certificate-file", s.Control.Certificate)
	look("server.control.key-file", s.Control.Key)
	look("server.control.client-ca-file", s.Control.ClientCA)
	look("server.control.audit-file", s.Control.Audit)
	if cfg.Cache.Size.Given() {
		look("cache.segment", cfg.Cache.Segment)
	}
	for i := range cfg.Volumes {
		if e := cfg.Volumes[i].Encryption; e != nil {
			key := conf.Key("volumes", cfg.Volumes[i].Name, "encryption")
			look(key+".key-file", e.KeyFile)
			look(key+".header-file", e.HeaderFile)
		}
	}
	return notes
}
