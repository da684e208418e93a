package tcp

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"lunar/target/login"
)

// TestChooseCongestion: only what paces is replaced, only on a short way, and only by what
// the server may use.
func TestChooseCongestion(t *testing.T) {
	here, near, home := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("127.0.0.1")
	all := []string{"reno", "bbr", "cubic", "dctcp"}
	for _, c := range []struct {
		k      controls
		remote netip.Addr
		rtt    time.Duration
		want   string
	}{
		{controls{system: "bbr", available: all, allowed: all}, home, 0, "cubic"},
		{controls{system: "bbr", available: all, allowed: all}, home, time.Second, "cubic"},
		{controls{system: "bbr", available: all, allowed: all}, here, 0, "cubic"},
		{controls{system: "bbr", available: all, allowed: all}, netip.IPv6Loopback(), 0, "cubic"},
		{controls{system: "bbr", available: all, allowed: all}, near, nearRTT, "cubic"},
		{controls{system: "bbr", available: all, allowed: all}, near, nearRTT + 1, "bbr"},
		{controls{system: "bbr", available: all, allowed: all}, near, 0, "bbr"},
		{controls{system: "bbr2", available: append(all, "bbr2"), allowed: all}, home, 0, "cubic"},
		{controls{system: "bbr", available: all, allowed: []string{"reno", "bbr"}}, home, 0, "reno"},
		{controls{system: "bbr", available: all, allowed: []string{"bbr"}}, home, 0, "bbr"},
		{controls{system: "bbr", available: all, allowed: []string{"bbr"}, privileged: true}, home, 0, "cubic"},
		{controls{system: "bbr", available: []string{"bbr", "dctcp"}, allowed: all, privileged: true}, home, 0, "bbr"},
		{controls{system: "bbr", allowed: all}, home, 0, "bbr"},
		{controls{system: "cubic", available: all, allowed: all}, near, 50 * time.Millisecond, "cubic"},
		{controls{system: "reno", available: all, allowed: all}, home, 0, "reno"},
		{controls{system: "dctcp", available: all, allowed: all}, near, time.Microsecond, "dctcp"},
	} {
		if got := c.k.choose(here, c.remote, c.rtt); got != c.want {
			t.Errorf("%+v: found %q", c, got)
		}
	}
}

// TestAutoCongestion: a connection on this machine has what is chosen for a short way, also
// where that changes while the portal is open.
func TestAutoCongestion(t *testing.T) {
	k, err := readControls()
	if err != nil {
		t.Skipf("the kernel does not tell its congestion control: %v", err)
	}
	transport, p, accepted := congested(t, AutoCongestion)
	for _, change := range []struct{ to, want string }{{AutoCongestion, k.near()}, {"", k.system}, {AutoCongestion, k.near()}} {
		if err := transport.SetCongestion(change.to); err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		l := (<-accepted).(*loginTransport)
		if name := congestionOf(t, l.conn); name != change.want {
			t.Errorf("%q: an accepted connection has %q, expected %q", change.to, name, change.want)
		}
		d, err := l.Enable(&login.ConnectionParams{})
		if err != nil {
			t.Fatal(err)
		}
		m := d.(*mover)
		if rtt := shortestRTT(m.fd); rtt <= 0 || rtt > time.Minute {
			t.Errorf("found a round trip of %v", rtt)
		}
		m.end()
		client.Close()
	}
}
