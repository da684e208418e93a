package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
)

// loginTransport is the LoginTransport of a TCP connection. It reads no byte beyond
// the PDU that it returns.
type loginTransport struct {
	conn       *net.TCPConn
	scratches  scratches
	congestion *congestion
	request    pdu.BHS
}

// Receive implements LoginTransport.
func (t *loginTransport) Receive() (*pdu.BHS, []byte, error) {
	if _, err := io.ReadFull(t.conn, t.request[:]); err != nil {
		return nil, nil, fmt.Errorf("waiting for a login request: %w", err)
	}
	bhs := &t.request
	n := bhs.DataSegmentLength()
	if bhs.Opcode() != pdu.OpLoginRequest || bhs.TotalAHSLength() != 0 || n > login.DefaultMaxRecvDataSegmentLength {
		return nil, nil, fmt.Errorf("%w: opcode %#x with %d bytes of data in login phase, expected a login request of at most %d",
			errProtocol, uint8(bhs.Opcode()), n, login.DefaultMaxRecvDataSegmentLength)
	}
	text := make([]byte, n+pdu.Padding(n))
	if _, err := io.ReadFull(t.conn, text); err != nil {
		return nil, nil, fmt.Errorf("reading a login request: %w", err)
	}
	return bhs, text[:n], nil
}

// Send implements LoginTransport.
func (t *loginTransport) Send(bhs *pdu.BHS, text []byte) error {
	wire := append(append(bhs[:len(bhs):len(bhs)], text...), pdu.ZeroPadding(len(text))...)
	_, err := t.conn.Write(wire)
	return err
}

// SetDeadline implements LoginTransport.
func (t *loginTransport) SetDeadline(at time.Time) error { return t.conn.SetDeadline(at) }

// Enable implements LoginTransport.
func (t *loginTransport) Enable(p *login.ConnectionParams) (target.Datamover, error) {
	fd, err := takeSocket(t.conn)
	if err != nil {
		return nil, err
	}
	t.congestion.settle(fd, t.Local().Addr(), t.Remote().Addr())
	return newMover(t.scratches, fd, p), nil
}

// Close implements LoginTransport.
func (t *loginTransport) Close() error { return t.conn.Close() }

// Local implements LoginTransport.
func (t *loginTransport) Local() netip.AddrPort { return addrPort(t.conn.LocalAddr()) }

// Remote implements LoginTransport.
func (t *loginTransport) Remote() netip.AddrPort { return addrPort(t.conn.RemoteAddr()) }

// takeSocket gets the descriptor out of the Go runtime's poller.
func takeSocket(conn *net.TCPConn) (int, error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd, dupErr := -1, error(nil)
	if err := raw.Control(func(s uintptr) { fd, dupErr = unix.FcntlInt(s, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return -1, err
	}
	if dupErr != nil {
		return -1, dupErr
	}
	if err := errors.Join(evloop.SetNonblock(fd), evloop.SetNoDelay(fd)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// IncomingCPU is the CPU that the kernel received the connection's packets on last
// (socket(7), SO_INCOMING_CPU); below 0: unknown. With receive-side scaling or packet
// steering it is where all of them come in.
func (t *loginTransport) IncomingCPU() int {
	cpu := -1
	raw, err := t.conn.SyscallConn()
	if err != nil {
		return cpu
	}
	_ = raw.Control(func(fd uintptr) { // of a closed socket it is unknown
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_INCOMING_CPU); err == nil {
			cpu = n
		}
	})
	return cpu
}

// addrPort is a socket address with IPv4-mapped addresses unmapped.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
