package targettest

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"lunar/internal/evloop"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/pdu"
)

// Wire says what a connection in memory is like. Zero values are a fast one.
type Wire struct {
	// Window is how many bytes may be under way to an initiator that does not
	// read; default 1 MiB.
	Window int
	// Piece is how many bytes the target receives at once; default all that
	// are there. Small pieces cut every PDU.
	Piece int
}

// Conn is the initiator's end of a connection in memory. It implements
// io.ReadWriteCloser and has deadlines; initiator.NewConn takes it.
type Conn struct {
	toTarget, toInitiator *pipe
	readBy, writeBy       deadline
	attached              chan *mover // holds the target's end from its first Attach on
}

// Addresses of the two ends.
var (
	portal = netip.MustParseAddrPort("127.0.0.1:3260")
	remote = netip.MustParseAddrPort("127.0.0.2:50000")
)

const defaultWindow = 1 << 20

// Dial connects to the portal group with this tag. The login runs on a
// goroutine that ends with it.
func Dial(s *target.Server, tag uint16, w Wire) *Conn {
	if w.Window == 0 {
		w.Window = defaultWindow
	}
	c := &Conn{toTarget: newPipe(defaultWindow), toInitiator: newPipe(w.Window), attached: make(chan *mover, 1)}
	go s.Login(&loginTransport{conn: c, wire: w}, tag)
	return c
}

// Read implements io.Reader.
func (c *Conn) Read(b []byte) (int, error) { return c.toInitiator.read(b, &c.readBy) }

// Write implements io.Writer. It blocks while the target receives nothing.
func (c *Conn) Write(b []byte) (int, error) { return c.toTarget.write(b, &c.writeBy) }

// SetReadDeadline bounds reads; the zero time is for ever.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.readBy.set(c.toInitiator, at)
	return nil
}

// SetWriteDeadline bounds writes.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.writeBy.set(c.toTarget, at)
	return nil
}

// Settle waits until the target has received all that was written and does
// nothing more about it of its own accord: what it has to say can be read. It
// waits for ever on a connection that does not finish its login.
func (c *Conn) Settle() {
	m := <-c.attached
	c.attached <- m
	m.link.Lock()
	loop := m.link.loop
	m.link.Unlock()
	if loop == nil {
		return
	}
	done := make(chan struct{})
	loop.Post(evloop.Func(func() { m.settle(loop, 0, done) }))
	<-done
}

// Buffered returns how many bytes can be read at once.
func (c *Conn) Buffered() int {
	c.toInitiator.mu.Lock()
	defer c.toInitiator.mu.Unlock()
	return c.toInitiator.held()
}

// Close breaks the connection off.
func (c *Conn) Close() error {
	c.toTarget.end()
	c.toInitiator.end()
	return nil
}

// loginTransport implements target.LoginTransport: the target's end during
// login.
type loginTransport struct {
	conn            *Conn
	wire            Wire
	readBy, writeBy deadline
	request         pdu.BHS
}

// Receive implements target.LoginTransport.
func (t *loginTransport) Receive() (*pdu.BHS, []byte, error) {
	from := readerFunc(func(b []byte) (int, error) { return t.conn.toTarget.read(b, &t.readBy) })
	if _, err := io.ReadFull(from, t.request[:]); err != nil {
		return nil, nil, fmt.Errorf("waiting for a login request: %w", err)
	}
	n := t.request.DataSegmentLength()
	if t.request.Opcode() != pdu.OpLoginRequest || n > login.DefaultMaxRecvDataSegmentLength {
		return nil, nil, fmt.Errorf("opcode %v with %d bytes in login phase, expected a login request", t.request.Opcode(), n)
	}
	text := make([]byte, n+pdu.Padding(n))
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, nil, fmt.Errorf("reading a login request: %w", err)
	}
	return &t.request, text[:n], nil
}

type readerFunc func([]byte) (int, error)

// Read calls f.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// Send implements target.LoginTransport.
func (t *loginTransport) Send(bhs *pdu.BHS, text []byte) error {
	wire := append(append([]byte(nil), bhs[:]...), text...)
	wire = append(wire, make([]byte, pdu.Padding(len(text)))...)
	_, err := t.conn.toInitiator.write(wire, &t.writeBy)
	return err
}

// SetDeadline implements target.LoginTransport.
func (t *loginTransport) SetDeadline(at time.Time) error {
	t.readBy.set(t.conn.toTarget, at)
	t.writeBy.set(t.conn.toInitiator, at)
	return nil
}

// Enable implements target.LoginTransport.
func (t *loginTransport) Enable(p *login.ConnectionParams) (target.Datamover, error) {
	if p.HeaderDigest || p.DataDigest {
		t.Close()
		return nil, errors.New("digests were negotiated, which memory does not have")
	}
	return newMover(t.conn, t.wire, p), nil
}

// Close implements target.LoginTransport.
func (t *loginTransport) Close() error { return t.conn.Close() }

// Local implements target.LoginTransport.
func (t *loginTransport) Local() netip.AddrPort { return portal }

// Remote implements target.LoginTransport.
func (t *loginTransport) Remote() netip.AddrPort { return remote }

// Ended reports whether the connection is broken off and all that it brought
// was read.
func (c *Conn) Ended() bool {
	c.toInitiator.mu.Lock()
	defer c.toInitiator.mu.Unlock()
	return c.toInitiator.ended && c.toInitiator.held() == 0
}
