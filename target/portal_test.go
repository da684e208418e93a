package target

import (
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCongestion: connections have the congestion control of their portal, and one
// that the kernel does not have is refused with its name.
func TestCongestion(t *testing.T) {
	s := Server{config: Config{Congestion: "reno"}} // which every kernel has
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
	s.config.Congestion = "no-such"
	if l, err := s.listen("127.0.0.1:0"); err == nil || !strings.Contains(err.Error(), `"no-such"`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("found %v and %v, expected an error that has the name and those that there are", l, err)
	}
}
