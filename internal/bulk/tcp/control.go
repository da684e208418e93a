package tcp

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/pipeline/rftp"
)

// What the first byte of a connection says.
const (
	controlChannel = 'C'
	dataChannel    = 'D'
)

// helloSize is what begins a data channel behind that byte: session, channel and token.
const (
	tokenSize = 32
	helloSize = 4 + 2 + tokenSize
)

const (
	handshakeTime = 10 * time.Second
	deadAfter     = 30 * time.Second // without an acknowledgement
)

// control is the control channel of either side.
type control struct {
	conn    *tls.Conn
	key     []byte // of blocks
	sending sync.Mutex
	buffer  []byte
	closing sync.Once
	closed  chan struct{}
	users   sync.WaitGroup // of the pool
}

// newControl is a control channel whose handshake is done.
func newControl(conn *tls.Conn) (*control, error) {
	state := conn.ConnectionState()
	key, err := state.ExportKeyingMaterial("EXPORTER-lunar-bulk-blocks", nil, 32)
	return &control{conn: conn, key: key, closed: make(chan struct{})}, err
}

// token proves that who opens a channel is who has the control channel.
func (c *control) token(session uint32, channel int) ([]byte, error) {
	state := c.conn.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-lunar-bulk-channel", hello(session, channel, nil), tokenSize)
}

func hello(session uint32, channel int, token []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, session)
	return append(binary.BigEndian.AppendUint16(b, uint16(channel)), token...)
}

// Send implements bulk.Link.
func (c *control) Send(m *rftp.Message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.buffer = m.Append(c.buffer[:0])
	_, err := c.conn.Write(c.buffer)
	return err
}

// read reads a message.
func read(from io.Reader) (m rftp.Message, err error) {
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
func (c *control) Key() []byte { return c.key }

// Wait implements bulk.Link.
func (c *control) Wait() { c.users.Wait() }

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
