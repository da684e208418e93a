package tcp

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// What the first byte of a connection says.
const (
	controlChannel = 'C'
	dataChannel    = 'D'
)

// deadAfter is how long a peer may not acknowledge anything.
const deadAfter = 30 * time.Second

// tune has a connection fail whose peer is gone.
func tune(conn net.Conn) {
	t, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// Without these a dead peer is noticed later.
	_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4})
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadAfter.Milliseconds()))
		})
	}
}
