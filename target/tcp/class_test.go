package tcp

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/target"
)

// TestMark: a socket sends with the code point of its class, over IPv4, over IPv6 and over
// IPv4 to a socket of both, until the class is another; ECN's bits are not touched.
func TestMark(t *testing.T) {
	for _, test := range []struct {
		name, listen, dial string
		option             [2]int
	}{
		{"IPv4", "127.0.0.1:0", "127.0.0.1", [2]int{unix.IPPROTO_IP, unix.IP_TOS}},
		{"IPv6", "[::1]:0", "::1", [2]int{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}},
		{"IPv4 to a socket of both", ":0", "127.0.0.1", [2]int{unix.IPPROTO_IP, unix.IP_TOS}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", test.listen)
			if err != nil {
				t.Skip("the machine has no such address: ", err)
			}
			defer l.Close()
			_, port, _ := net.SplitHostPort(l.Addr().String())
			client, err := net.Dial("tcp", net.JoinHostPort(test.dial, port))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			raw, _ := server.(syscall.Conn).SyscallConn()
			err = raw.Control(func(fd uintptr) {
				m := &mover{fd: int(fd)}
				for _, dscp := range []uint8{46, 46, 10, 0} {
					if err := m.SetClass(target.NetworkClass{DSCP: dscp}); err != nil {
						t.Fatal(err)
					}
					if field, err := unix.GetsockoptInt(int(fd), test.option[0], test.option[1]); err != nil || field&^3 != int(dscp)<<2 {
						t.Errorf("the socket has %#x (%v), expected DSCP %d", field, err, dscp)
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
