package initiator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Detach gives up the socket of a connection in full feature phase: it returns
// a non-blocking descriptor of which the Go runtime knows nothing, for an event
// loop of the caller's, who now owns it. Until Attach the Conn only holds the
// protocol state.
func (c *Conn) Detach() (int, error) {
	tcp, ok := c.rw.(syscall.Conn)
	if !ok || len(c.in) > 0 {
		return -1, fmt.Errorf("detach a connection over %T with %d bytes buffered: expected an idle socket", c.rw, len(c.in))
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("detach: %w", err)
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dupErr); err != nil {
		return -1, fmt.Errorf("detach: %w", err)
	}
	// Closing takes the original off the runtime's poller, which would
	// otherwise wake up with every packet.
	return fd, c.Close()
}

// Attach takes a descriptor of Detach back, and owns it from now on.
func (c *Conn) Attach(fd int) error {
	file := os.NewFile(uintptr(fd), "iscsi")
	defer file.Close()
	nc, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	c.rw = nc
	return nil
}
