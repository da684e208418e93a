package keyed

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"lunar/internal/pipeline/rftp"
	"lunar/internal/places"
)

// TokenSize is the length of a data channel's token, and HelloSize that of what it begins
// with: session, channel and token, in bytes.
const (
	TokenSize = 32
	HelloSize = 4 + 2 + TokenSize
)

// HandshakeTime is how long a connection may take until it is one.
const HandshakeTime = 10 * time.Second

// goodbyeTime is how long the last messages may take to go out.
const goodbyeTime = time.Second

// Control is the control channel of either side.
type Control struct {
	// Users are those of the pool's memory, for Wait.
	Users   sync.WaitGroup
	conn    *tls.Conn
	key     []byte // of blocks
	sending sync.Mutex
	buffer  []byte
	closing sync.Once
	closed  chan struct{}
}

// Client makes the control channel of who sends of a connection to who receives. After an
// error the connection is the caller's.
func Client(ctx context.Context, raw net.Conn, key Key) (*Control, error) {
	config, err := key.config(sender, receiver)
	if err != nil {
		return nil, err
	}
	return shake(ctx, raw, tls.Client(raw, config))
}

// Server makes the control channel of who receives, with the key's Config.
func Server(ctx context.Context, raw net.Conn, config *tls.Config) (*Control, error) {
	return shake(ctx, raw, tls.Server(raw, config))
}

func shake(ctx context.Context, raw net.Conn, conn *tls.Conn) (*Control, error) {
	_ = raw.SetDeadline(time.Now().Add(HandshakeTime)) // a connection that has none fails below
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if err := raw.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	state := conn.ConnectionState()
	key, err := state.ExportKeyingMaterial("EXPORTER-lunar-bulk-blocks", nil, 32)
	return &Control{conn: conn, key: key, closed: make(chan struct{})}, err
}

// Hello is what a data channel begins with: it proves that who opens it is who has the control
// channel.
func (c *Control) Hello(session uint32, channel int) ([]byte, error) {
	state := c.conn.ConnectionState()
	b := binary.BigEndian.AppendUint32(nil, session)
	b = binary.BigEndian.AppendUint16(b, uint16(channel))
	token, err := state.ExportKeyingMaterial("EXPORTER-lunar-bulk-channel", b, TokenSize)
	return append(b, token...), err
}

// Send implements bulk.Link.
func (c *Control) Send(m *rftp.Message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.buffer = m.Append(c.buffer[:0])
	_, err := c.conn.Write(c.buffer)
	return err
}

// Receive implements bulk.Link, of who sends.
func (c *Control) Receive() (rftp.Message, error) { return Read(c.conn) }

// Read reads a message.
func Read(from io.Reader) (m rftp.Message, err error) {
	head := make([]byte, rftp.HeadSize)
	if _, err := io.ReadFull(from, head); err != nil {
		return m, err
	}
	whole := append(head, make([]byte, rftp.BodyLength(head))...)
	if _, err := io.ReadFull(from, whole[rftp.HeadSize:]); err != nil {
		return m, err
	}
	return rftp.Parse(whole)
}

// Key implements bulk.Link.
func (c *Control) Key() []byte { return c.key }

// Wait implements bulk.Link.
func (c *Control) Wait() { c.Users.Wait() }

// From is the address of the other side, if it has one.
func (c *Control) From() (netip.Addr, bool) { return places.AddressOf(c.conn) }

// Closed is closed by Close.
func (c *Control) Closed() <-chan struct{} { return c.closed }

// Close implements bulk.Link, as far as this channel goes. It may be called again.
func (c *Control) Close() (err error) {
	c.closing.Do(func() {
		close(c.closed)
		_ = c.conn.NetConn().SetWriteDeadline(time.Now().Add(goodbyeTime))
		err = c.conn.Close()
	})
	return err
}
