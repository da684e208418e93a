package target

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"lunar/target/login"
	"lunar/target/pdu"
)

// tcpLogin is the LoginTransport of a TCP connection. It reads no byte beyond
// the PDU that it returns.
type tcpLogin struct {
	conn    *net.TCPConn
	request pdu.BHS
}

// Receive implements LoginTransport.
func (t *tcpLogin) Receive() (*pdu.BHS, []byte, error) {
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
func (t *tcpLogin) Send(bhs *pdu.BHS, text []byte) error {
	wire := append(append(bhs[:len(bhs):len(bhs)], text...), pdu.ZeroPadding(len(text))...)
	_, err := t.conn.Write(wire)
	return err
}

// SetDeadline implements LoginTransport.
func (t *tcpLogin) SetDeadline(at time.Time) error { return t.conn.SetDeadline(at) }

// Enable implements LoginTransport.
func (t *tcpLogin) Enable(p *login.ConnectionParams) (Datamover, error) {
	return newTCPMover(t.conn, p)
}

// Close implements LoginTransport.
func (t *tcpLogin) Close() error { return t.conn.Close() }

// Local implements LoginTransport.
func (t *tcpLogin) Local() netip.AddrPort { return addrPort(t.conn.LocalAddr()) }

// Remote implements LoginTransport.
func (t *tcpLogin) Remote() netip.AddrPort { return addrPort(t.conn.RemoteAddr()) }
