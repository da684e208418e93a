// Package tcppair gives tests and benchmarks both ends of a TCP connection over
// loopback, as bare descriptors.
package tcppair

import (
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// New returns both ends of a connection, as blocking descriptors that are closed when
// the test ends.
func New(tb testing.TB) (from, to int) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	fds := [2]int{}
	for i, c := range []net.Conn{out, in} {
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			tb.Fatal(err)
		}
		c.Close()
		tb.Cleanup(func() { f.Close() })
		fds[i] = int(f.Fd()) // and blocking from here on
	}
	return fds[0], fds[1]
}

// Drain reads until the end, and then sends how many bytes have come. quick has the
// kernel acknowledge at once.
func Drain(fd int, quick bool, read chan<- int) {
	in, all := make([]byte, 1<<20), 0
	for {
		n, err := unix.Read(fd, in)
		if quick {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
		}
		if n <= 0 && !errors.Is(err, unix.EINTR) {
			read <- all
			return
		}
		all += max(n, 0)
	}
}
