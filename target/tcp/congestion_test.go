package tcp

import (
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/target"
)

// congestionOf is the congestion control of a socket.
func congestionOf(t *testing.T, conn interface {
	SyscallConn() (syscall.RawConn, error)
}) (name string) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			name, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(name, "\x00")
}

// congested opens a portal whose connections have a congestion control, and returns what
// it accepts.
func congested(t *testing.T, name string) (*Transport, target.Portal, <-chan target.LoginTransport) {
	t.Helper()
	transport, err := Open(Config{Congestion: name})
	if err != nil {
		t.Fatal(err)
	}
	p := transport.Portal("127.0.0.1:0")
	if err := p.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	accepted := make(chan target.LoginTransport, 1)
	p.Accept(func(l target.LoginTransport) { accepted <- l })
	return transport, p, accepted
}

// TestCongestion: connections have the congestion control of their portal, and one
// that the kernel does not have is refused with its name.
func TestCongestion(t *testing.T) {
	_, p, accepted := congested(t, "reno") // which every kernel has
	client, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l := (<-accepted).(*loginTransport)
	defer l.Close()
	if name := congestionOf(t, l.conn); name != "reno" {
		t.Errorf("an accepted connection has %q, expected reno", name)
	}
	if cpu := l.IncomingCPU(); cpu < -1 || cpu >= 1<<16 {
		t.Errorf("the kernel says CPU %d", cpu)
	}
	unknown, err := Open(Config{Congestion: "no-such"})
	if err != nil {
		t.Fatal(err)
	}
	if err := unknown.Portal("127.0.0.1:0").Open(); err == nil || !strings.Contains(err.Error(), `"no-such"`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("found %v, expected an error that has the name and those that there are", err)
	}
}

// TestCongestionChanges: portals that are open follow, all or none.
func TestCongestionChanges(t *testing.T) {
	s, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	var portals []*portal
	for range 2 {
		p := s.Portal("127.0.0.1:0").(*portal)
		if err := p.Open(); err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		portals = append(portals, p)
	}
	has := func() (names []string) {
		for _, p := range portals {
			names = append(names, congestionOf(t, p.listener.Load()))
		}
		return names
	}
	first := has()
	if err := s.SetCongestion("no-such"); err == nil || !strings.Contains(err.Error(), `"no-such"`) || !slices.Equal(has(), first) {
		t.Errorf("found %v and %q, expected an error and %q", err, has(), first)
	}
	if err := s.SetCongestion("reno"); err != nil || !slices.Equal(has(), []string{"reno", "reno"}) {
		t.Errorf("found %v and %q, expected reno", err, has())
	}
	if err := s.SetCongestion(""); err != nil || !slices.Equal(has(), first) {
		t.Errorf("found %v and %q, expected that of the system, %q", err, has(), first)
	}
}
