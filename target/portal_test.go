package target

import (
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCongestion: connections have the congestion control of their portal, and one
// that the kernel does not have is refused with its name.
func TestCongestion(t *testing.T) {
	var s Server
	if err := s.SetCongestion("reno"); err != nil { // which every kernel has
		t.Fatal(err)
	}
	l, err := s.listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := takeSocket(conn.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || strings.TrimRight(name, "\x00") != "reno" {
		t.Errorf("an accepted connection has %q, error %v, expected reno", name, err)
	}
	unknown := "no-such"
	s.congestion.Store(&unknown)
	if l, err := s.listen("127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), `"no-such"`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("found %v and %v, expected an error that has the name and those that there are", l, err)
	}
}

// TestCongestionChanges: portals that are open follow, all or none.
func TestCongestionChanges(t *testing.T) {
	var s Server
	var listeners []net.Listener
	for range 2 {
		l, err := s.listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		listeners = append(listeners, l)
	}
	s.mu.groups = map[uint16]*portalGroup{1: {listeners: listeners}}
	has := func() (names []string) {
		for _, l := range listeners {
			raw, err := l.(*net.TCPListener).SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) {
					name, _ := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
					names = append(names, strings.TrimRight(name, "\x00"))
				})
			}
			if err != nil {
				t.Fatal(err)
			}
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
