package daemon

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
)

// TestCheckPrivileges: what needs more than an ordinary user is named, and nothing else.
func TestCheckPrivileges(t *testing.T) {
	root := t.TempDir()
	net := filepath.Join(root, "proc/sys/net/ipv4")
	if err := os.MkdirAll(net, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(net, "ip_unprivileged_port_start"), "1000\n")
	writeFile(t, filepath.Join(net, "tcp_allowed_congestion_control"), "reno cubic\n")
	listen := func(at ...string) (all []netip.AddrPort) {
		for _, a := range at {
			all = append(all, netip.MustParseAddrPort(a))
		}
		return all
	}
	for want, cfg := range map[string]*conf.Config{
		"":                               {Server: conf.Server{Congestion: "cubic"}, PortalGroups: []conf.PortalGroup{{Listen: listen("127.0.0.1:3260", "127.0.0.1:1000", "[::1]:0")}}},
		"127.0.0.1:860, [::1]:999 needs": {Server: conf.Server{Congestion: "system"}, PortalGroups: []conf.PortalGroup{{Listen: listen("127.0.0.1:860", "[::1]:999", "127.0.0.1:3260")}}},
		"congestion: bbr needs":          {Server: conf.Server{Congestion: "bbr"}},
		"listen-iser needs":              {Server: conf.Server{Congestion: "system"}, PortalGroups: []conf.PortalGroup{{ListenISER: []conf.ISERPortal{{}}}}},
	} {
		if notes := checkPrivileges(cfg, root); len(notes) != min(len(want), 1) || want != "" && !strings.Contains(notes[0], want) {
			t.Errorf("found %q, expected %q", notes, want)
		}
	}
}

// TestDoubtful: a key that others may change is named with what mends it.
func TestDoubtful(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	writeFile(t, key, "")
	cfg := &conf.Config{Volumes: []conf.Volume{{Name: "v", Encryption: &conf.VolumeEncryption{KeyFile: key, HeaderFile: key}}}}
	cfg.Server.MetricsKey = key
	if notes := doubtful(cfg); len(notes) > 0 {
		t.Errorf("found %q", notes)
	}
	if err := os.Chmod(filepath.Dir(key), 0o777); err != nil {
		t.Fatal(err)
	}
	if notes := doubtful(cfg); len(notes) != 3 || !strings.Contains(notes[1], "volumes.v.encryption.key-file") || !strings.Contains(notes[1], "chmod o-w "+filepath.Dir(key)) {
		t.Errorf("found %q", notes)
	}
}
