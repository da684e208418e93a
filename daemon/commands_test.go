package daemon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

func TestCommandLine(t *testing.T) {
	for _, test := range []struct {
		args     []string
		status   int
		out, err string
	}{
		{[]string{"version"}, cli.ExitOK, "tgtd development linux/", ""},
		{[]string{"--version"}, cli.ExitOK, "tgtd development linux/", ""},
		{[]string{"qos", "set", "r", "--limit", ""}, cli.ExitUsage, "", `--limit: found "", expected values`},
		{[]string{"qos", "set", "r", "--burst", "5,"}, cli.ExitUsage, "", `found "5,", expected values`},
		{[]string{"qos", "set", "r", "--initiators="}, cli.ExitUsage, "", "--initiators"},
		{[]string{"qos", "set", "r", "--weight", "0"}, cli.ExitFailure, "", `--weight: found "0", expected a whole number from 1 to 1000`},
		{[]string{"qos", "set", "r", "--target", ""}, cli.ExitFailure, "", `--target: found ""`},
		{[]string{"--help"}, cli.ExitOK, "Usage: tgtd", ""},
		{nil, cli.ExitOK, "Usage: tgtd", ""},
		{[]string{"check", "../conf/tgtd.yaml"}, cli.ExitOK, "tgtd.yaml: ok: 1 target, 1 volume, 0 warnings", ""},
		{[]string{"check", "../conf/testdata/errors/discovery.yaml"}, cli.ExitFailure, "", "discovery.yaml:2:19: discovery.auth: found"},
		{[]string{"check", "/nonexistent"}, cli.ExitFailure, "", "no such file"},
		{[]string{"check"}, cli.ExitUsage, "", "<file>"},
		{[]string{"sreve"}, cli.ExitUsage, "", `did you mean one of "serve"`},
		{[]string{"serve", "--lisen", ":1"}, cli.ExitUsage, "", "--lisen"},
	} {
		var out, err eventually.Output
		if status := run(context.Background(), test.args, cli.Console{Out: &out, Err: &err}); status != test.status {
			t.Errorf("%q: found exit status %d, expected %d", test.args, status, test.status)
		}
		if !strings.Contains(out.String(), test.out) || !strings.Contains(err.String(), test.err) {
			t.Errorf("%q: found %q and %q, expected %q and %q", test.args, &out, &err, test.out, test.err)
		}
	}
}

func TestListenAddresses(t *testing.T) {
	for listen, want := range map[string]string{
		":3260":                           "[:3260]",
		"0.0.0.0:3260":                    "[0.0.0.0:3260]",
		"[::]:3260":                       "[[::]:3260]",
		"0.0.0.0:1 [::]:2":                "[0.0.0.0:1 [::]:2]",
		"127.0.0.1:3260 [::]:7 0.0.0.0:7": "[127.0.0.1:3260 :7]",
	} {
		var portals []netip.AddrPort
		for _, text := range strings.Fields(listen) {
			p, ok := conf.ParseListen(text)
			if !ok {
				t.Fatal(text)
			}
			portals = append(portals, p...)
		}
		if got := fmt.Sprint(listenAddresses(portals)); got != want {
			t.Errorf("%s: found %s, expected %s", listen, got, want)
		}
	}
}

func TestReachable(t *testing.T) {
	all4, all6 := netip.MustParseAddrPort("0.0.0.0:1"), netip.MustParseAddrPort("[::]:1")
	for _, test := range []struct {
		addr   string
		listen []netip.AddrPort
		ipv4   bool
	}{
		{"[::]:3260", []netip.AddrPort{all4, all6}, true},
		{"0.0.0.0:3260", []netip.AddrPort{all4}, true},
		{"[::]:3260", []netip.AddrPort{all6}, false},
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.addr))
		got, err := netip.ParseAddrPort(reachable(addr, test.listen))
		if err != nil || got.Addr().IsUnspecified() || got.Addr().Is4() != test.ipv4 || got.Port() != 3260 {
			t.Errorf("%s: found %v, %v", test.addr, got, err)
		}
	}
	loopback := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[::1]:3260"))
	if got := reachable(loopback, nil); got != "[::1]:3260" {
		t.Errorf("found %s", got)
	}
}

// TestHolders: the process that listens is named, here this one under the
// name that ownersOf leaves out, so the socket itself must be found.
func TestHolders(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort()
	inodes := map[string]bool{}
	listeningInodes("/proc/net/tcp", map[uint16]bool{port.Port(): true}, inodes)
	if len(inodes) != 1 {
		t.Errorf("found inodes %v, expected one", inodes)
	}
	if got := holders([]netip.AddrPort{port}); got != "" {
		t.Errorf("found %q, expected nobody but this process", got)
	}
}

func TestDefaultStateDir(t *testing.T) {
	if os.Geteuid() == 0 {
		if dir, err := conf.DefaultStateDir(); err != nil || dir != "/var/lib/lunar" {
			t.Errorf("found %s, %v", dir, err)
		}
		return
	}
	t.Setenv("XDG_STATE_HOME", "/x")
	if dir, err := conf.DefaultStateDir(); err != nil || dir != "/x/lunar" {
		t.Errorf("found %s, %v", dir, err)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/someone")
	if dir, err := conf.DefaultStateDir(); err != nil || dir != "/home/someone/.local/state/lunar" {
		t.Errorf("found %s, %v", dir, err)
	}
}

// TestAnnounceTarget: the lines name CHAP users but no secret.
func TestAnnounceTarget(t *testing.T) {
	cfg, _, err := conf.Parse("test", []byte(`
auth-groups: {g: {chap: [{user: host, secret: "never to be seen"}]}}
volumes: {v: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {auth-group: g, luns: {0: v}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	var out eventually.Output
	announceTarget(&out, cfg, &cfg.Targets[0], "192.0.2.1:3260")
	node := "  iscsiadm -m node -T iqn.2026-11.test:t -p 192.0.2.1:3260"
	want := node + " -o update -n node.session.auth.authmethod -v CHAP\n" +
		node + " -o update -n node.session.auth.username -v host\n" +
		node + " -o update -n node.session.auth.password -v SECRET\n" +
		node + " --login\n"
	if out.String() != want {
		t.Errorf("found\n%s\nexpected\n%s", out.String(), want)
	}

	out = eventually.Output{}
	cfg.AuthGroups[0].Mutual = &conf.Credential{User: "the target's", Secret: conf.NewSecret("never to be seen either")}
	cfg.Discovery.AuthGroup = "g"
	announceDiscovery(&out, cfg, "192.0.2.1:3260")
	record := "  iscsiadm -m discoverydb -t sendtargets -p 192.0.2.1:3260"
	want = record + " -o new\n" +
		record + " -o update -n discovery.sendtargets.auth.authmethod -v CHAP\n" +
		record + " -o update -n discovery.sendtargets.auth.username -v host\n" +
		record + " -o update -n discovery.sendtargets.auth.password -v SECRET\n" +
		record + " -o update -n discovery.sendtargets.auth.username_in -v 'the target'\\''s'\n" +
		record + " -o update -n discovery.sendtargets.auth.password_in -v SECRET_OF_THE_TARGET\n" +
		record + " --discover\n"
	if out.String() != want {
		t.Errorf("found\n%s\nexpected\n%s", out.String(), want)
	}
}
