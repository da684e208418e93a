package conf

import (
	"net/netip"
	"testing"
)

func TestListenISER(t *testing.T) {
	cfg, _, err := Parse("t", []byte(`
portal-groups:
  a: {tag: 1, listen-iser: [eth2, "ib0:3261", 192.0.2.1, "[2001:db8::1]:3262", ":3263"]}
  b: {tag: 2, listen: [192.0.2.1], listen-iser: ["192.0.2.2:3260"]}
server:
  iser: {immediate-data: 0KiB, remote-invalidation: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.PortalGroup("a"), cfg.PortalGroup("b")
	want := []string{"eth2:3260", "ib0:3261", "192.0.2.1:3260", "[2001:db8::1]:3262", "0.0.0.0:3263", "[::]:3263"}
	if len(a.Listen) != 0 || len(a.ListenISER) != len(want) {
		t.Fatalf("listens on %v and %v, expected nothing and %v", a.Listen, a.ListenISER, want)
	}
	for i, p := range a.ListenISER {
		if p.String() != want[i] {
			t.Errorf("portal %d: found %v, expected %s", i, p, want[i])
		}
	}
	if len(b.Listen) != 1 || len(b.ListenISER) != 1 || b.ListenISER[0].Addr != netip.MustParseAddrPort("192.0.2.2:3260") {
		t.Errorf("listens on %v and %v", b.Listen, b.ListenISER)
	}
	if cfg.Server.ISER != (ISER{}) {
		t.Errorf("found %+v", cfg.Server.ISER)
	}
}
