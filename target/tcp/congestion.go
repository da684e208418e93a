package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// congestion is the congestion control of all sockets that listen: those that they
// accept inherit it.
type congestion struct {
	mu struct {
		sync.Mutex
		name string // of connections that come from now on: AutoCongestion, or the kernel's name; empty: the system's
		open map[*net.TCPListener]bool
	}
}

// listen opens a socket.
func (c *congestion) listen(addr string) (*net.TCPListener, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var config net.ListenConfig
	switch name := c.mu.name; name {
	case "":
	case AutoCongestion:
		k, _ := readControls()
		config.Control = func(_, _ string, raw syscall.RawConn) error {
			_ = setCongestion(raw, k.near()) // else it keeps the system's
			return nil
		}
	default:
		config.Control = func(_, _ string, raw syscall.RawConn) error { return setCongestion(raw, name) }
	}
	l, err := config.Listen(context.Background(), network(addr), addr)
	if err != nil {
		return nil, err
	}
	opened := l.(*net.TCPListener)
	c.mu.open[opened] = true
	return opened, nil
}

// adopt takes a socket that listens already, or closes it after an error.
func (c *congestion) adopt(l *net.TCPListener) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.open[l] = true
	err := c.set(c.mu.name)
	if err != nil && c.mu.name != "" && c.mu.name != AutoCongestion {
		delete(c.mu.open, l)
		return errors.Join(err, l.Close())
	}
	return nil // else it keeps what it has
}

// close closes a socket.
func (c *congestion) close(l *net.TCPListener) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.open, l)
	return l.Close()
}

// change gives all sockets another one, or none.
func (c *congestion) change(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.set(name); err != nil {
		return errors.Join(err, c.set(c.mu.name))
	}
	c.mu.name = name
	return nil
}

// set sets the congestion control of all sockets. The caller holds mu.
func (c *congestion) set(name string) error {
	if name == "" || name == AutoCongestion {
		k, err := readControls()
		if err != nil {
			return fmt.Errorf("congestion control of the system: %w", err)
		}
		if name == AutoCongestion {
			name = k.near()
		} else {
			name = k.system
		}
	}
	for l := range c.mu.open {
		raw, err := l.SyscallConn()
		if err == nil {
			err = setCongestion(raw, name)
		}
		if err != nil {
			return fmt.Errorf("portal %s: %w", l.Addr(), err)
		}
	}
	return nil
}

// settle gives a connection that has logged in what is chosen for its way. The socket that
// it came by has given it what is chosen for a short one: who paced once would go on with
// the timer.
func (c *congestion) settle(fd int, local, remote netip.Addr) {
	c.mu.Lock()
	name := c.mu.name
	c.mu.Unlock()
	if name != AutoCongestion {
		return
	}
	if k, err := readControls(); err == nil {
		if chosen := k.choose(local, remote, shortestRTT(fd)); chosen != k.near() {
			_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, chosen) // else it keeps what it has
		}
	}
}

// setCongestion sets the congestion control of a socket.
func setCongestion(raw syscall.RawConn, name string) error {
	var refused error
	err := raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	})
	if refused != nil {
		there, _ := os.ReadFile(availableCongestion) // for the message alone
		refused = fmt.Errorf("congestion control %q: %w; expected one that the kernel has, such as %s", name, refused, strings.Join(strings.Fields(string(there)), ", "))
	}
	return errors.Join(err, refused)
}

// network keeps a literal address to its own family: 0.0.0.0 is IPv4 alone and
// [::] IPv6 alone, which net.Listen would both make dual stack.
func network(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	literal, perr := netip.ParseAddr(host)
	switch {
	case err != nil || perr != nil:
		return "tcp"
	case literal.Is4():
		return "tcp4"
	}
	return "tcp6"
}
