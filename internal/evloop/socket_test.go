package evloop

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func sockets(t testing.TB) (a, b int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		t.Cleanup(func() { _ = unix.Close(fd) })
		if err := SetNonblock(fd); err != nil {
			t.Fatal(err)
		}
	}
	return fds[0], fds[1]
}

func iovecs(parts ...[]byte) []unix.Iovec {
	iov := make([]unix.Iovec, len(parts))
	for i, p := range parts {
		iov[i].Base = &p[0]
		iov[i].SetLen(len(p))
	}
	return iov
}

func TestSocketCalls(t *testing.T) {
	a, b := sockets(t)
	buf := make([]byte, 4)
	if n, errno := Read(b, buf); n != 0 || errno != unix.EAGAIN {
		t.Errorf("empty socket: %d %v, expected 0 EAGAIN", n, errno)
	}
	if n, errno := Sendmsg(a, iovecs([]byte("header"), []byte("data")), 0); n != 10 || errno != 0 {
		t.Fatalf("sendmsg: %d %v, expected 10 and no error", n, errno)
	}
	if n, errno := Read(b, buf); n != 4 || errno != 0 || string(buf) != "head" {
		t.Errorf("read: %d %v %q, expected 4 bytes %q", n, errno, buf, "head")
	}
	rest := make([]byte, 10)
	if n, errno := Readv(b, iovecs(buf[:2], rest)); n != 6 || errno != 0 || string(buf[:2])+string(rest[:4]) != "erdata" {
		t.Errorf("readv: %d %v %q %q, expected 6 bytes %q", n, errno, buf[:2], rest, "erdata")
	}
	if n, errno := Readv(b, iovecs(buf)); n != 0 || errno != unix.EAGAIN {
		t.Errorf("empty socket: %d %v, expected 0 EAGAIN", n, errno)
	}
}

func TestSendmsgFullAndBroken(t *testing.T) {
	a, b := sockets(t)
	big := iovecs(make([]byte, 64<<10))
	sent, errno := 0, unix.Errno(0)
	for errno == 0 {
		var n int
		n, errno = Sendmsg(a, big, 0)
		sent += n
	}
	if errno != unix.EAGAIN || sent == 0 {
		t.Errorf("full socket: %v after %d bytes, expected EAGAIN after some", errno, sent)
	}
	if err := unix.Shutdown(b, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if n, errno := Sendmsg(a, big, 0); n != 0 || errno != unix.EPIPE { // and no SIGPIPE
		t.Errorf("broken socket: %d %v, expected 0 EPIPE", n, errno)
	}
}

func TestReadAtEnd(t *testing.T) {
	a, b := sockets(t)
	if err := unix.Shutdown(a, unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	if n, errno := Read(b, make([]byte, 4)); n != 0 || errno != 0 {
		t.Errorf("end of stream: %d %v, expected 0 and no error", n, errno)
	}
}

func TestSetNoDelay(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := SetNoDelay(fd); err != nil {
		t.Fatal(err)
	}
	if on, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); err != nil || on != 1 {
		t.Errorf("TCP_NODELAY is %d (%v), expected 1", on, err)
	}
	if err := SetNoDelay(-1); err == nil {
		t.Error("no error for a descriptor that is not open")
	}
}

// A connection from the net package works on a loop.
func TestServeTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := conn.(*net.TCPConn).File()
	_ = conn.Close()
	if err != nil {
		t.Fatal(err)
	}
	l := start(t, Config{})
	echo := &echo{fd: int(file.Fd()), buf: make([]byte, 64)}
	on(l, func() {
		if err := SetNonblock(echo.fd); err != nil {
			t.Error(err)
		}
		mustRegister(t, l, echo.fd, unix.EPOLLIN|unix.EPOLLET, echo)
	})
	for _, text := range []string{"one", "two", "three"} {
		exchange(t, client, text)
	}
	on(l, func() {
		if err := l.Unregister(echo.fd); err != nil {
			t.Error(err)
		}
	})
	_ = file.Close()
}

// echo sends back what it reads.
type echo struct {
	fd  int
	buf []byte
}

func (e *echo) Ready(uint32) {
	for {
		n, errno := Read(e.fd, e.buf)
		if n == 0 || errno != 0 {
			return
		}
		_, _ = Sendmsg(e.fd, iovecs(e.buf[:n]), 0)
	}
}

func exchange(t *testing.T, client net.Conn, text string) {
	t.Helper()
	if _, err := client.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if n, err := client.Read(b); err != nil || string(b[:n]) != text {
		t.Errorf("echo %q (%v), expected %q", b[:n], err, text)
	}
}
