package daemon

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
	fabric "lunar/iser/verbs/fake"
)

// TestApplyListenISER: portals over RDMA come and go while the server runs, also
// the first one, for which RDMA is started. Where there is none nothing is changed.
func TestApplyListenISER(t *testing.T) {
	open := openRDMA
	t.Cleanup(func() { openRDMA = open })
	network := fabric.New(t, fabric.Options{})
	host := network.Host("target", false, fabric.DeviceOptions{Name: "rxe0", Addr: netip.MustParseAddr("10.0.0.1")})
	client := network.Host("initiator", true, fabric.DeviceOptions{Name: "rxe1", Addr: netip.MustParseAddr("10.0.0.2")})
	openRDMA = func() (verbs.Provider, error) { return nil, errors.New("this host has none") }

	l := serveLive(t, liveConfig)
	tcp := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, tcp, 0)
	const first, second = `listen-iser: ["10.0.0.1:3260"]`, `listen-iser: ["10.0.0.1:3261"]`
	add := []string{`listen: ["127.0.0.1:0"]`, `listen: ["127.0.0.1:0"], ` + first}
	l.apply(cli.ExitFailure, add, "iSER: this host has none", "nothing was changed")
	if out := l.tgtd(cli.ExitOK, "status"); strings.Contains(out, "iSER is off") {
		t.Errorf("what is not configured is told to be off:\n%s", out)
	}

	openRDMA = func() (verbs.Provider, error) { return host, nil }
	l.apply(cli.ExitOK, add, "listen-iser")
	c := overISER(t, client, "10.0.0.1:3260")
	l.apply(cli.ExitFailure, []string{first, `listen-iser: ["10.0.0.1:3260", "10.7.7.7:3260"]`}, "10.7.7.7:3260", "nothing was changed")
	settle(t, c, 0)
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, []string{first, second}, "listen-iser", "sessions asked to log out: 1")
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
	settle(t, overISER(t, client, "10.0.0.1:3261"), 0)
	settle(t, tcp, 0)
	l.apply(cli.ExitOK, []string{", " + second, ""}, "listen-iser", "sessions asked to log out: 1")
	settle(t, tcp, 0)
}

// overISER logs in to the target u over the fake.
func overISER(t *testing.T, h *fabric.Host, portal string) *initiator.Conn {
	t.Helper()
	wire, err := isertest.Dial(h, isertest.Options{Portal: netip.MustParseAddrPort(portal)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wire.Close() })
	c := initiator.NewConn(wire)
	if err := c.Login(initiator.Options{ISID: [6]byte{0x80, 7}, Target: "iqn.2026-11.test:u"}); err != nil {
		t.Fatal(err)
	}
	settle(t, c, 0)
	return c
}
