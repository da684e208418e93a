package initiator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"time"
)

// DefaultTimeout bounds every wait for the target when Conn.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// ErrTimeout is returned, wrapped, when the target sent nothing in time. The
// connection stays usable: a PDU that arrived in part is kept.
var ErrTimeout = errors.New("no PDU from the target in time")

// ErrClosed is returned, wrapped, when the target closed the connection.
var ErrClosed = errors.New("connection closed by the target")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Order is the command order of a session, which its connections share.
type Order struct {
	CmdSN    uint32 // of the next non-immediate request
	ExpCmdSN uint32 // the target's last word, on whatever connection
	MaxCmdSN uint32 // the target's last word, on whatever connection

	nextITT uint32
	known   bool // the target has said something
}

// Conn is one connection of an initiator, and its whole session until others Join.
// The connections of a session are used by one goroutine. The exported fields are
// the live protocol state: a test may set them to send something wrong on purpose.
type Conn struct {
	*Order
	Params   Params
	ISID     [6]byte
	TSIH     uint16
	CID      uint16
	Identity Identity // what the last login exchange said of the peer

	ExpStatSN uint32 // StatSN that the next status must carry

	Timeout     time.Duration // per wait; DefaultTimeout when zero
	IgnorePings bool          // leave the target's NOP-In unanswered
	Async       []*PDU        // asynchronous messages seen by Step
	Rejects     []*PDU        // Reject PDUs seen by Step
	Pings       int           // target pings seen by Step

	// Lose, at ErrorRecoveryLevel 1, says which received PDUs are lost; Corrupt may
	// spoil one that is sent.
	Lose    func(*PDU) bool
	Corrupt func(*PDU)
	Lost    int // PDUs that Lose took

	ahead       []*PDU // came before others that are missing
	prodded     bool
	askedStatus uint32 // StatSN before which what is missing was asked for

	rw          io.ReadWriter
	in          []byte // received and not yet parsed
	out         []byte // reused for every Send
	loginPhase  bool
	joins       bool // a session that is there already
	statSNKnown bool // the first status of a connection sets the sequence
	windowKnown bool
	exp, max    uint32 // ExpCmdSN and MaxCmdSN as this connection last said
	tasks       map[uint32]*Task
}

// NewConn wraps a transport before login. Deadlines are used when the transport
// has them (net.Conn, net.Pipe), otherwise reads block without limit.
func NewConn(rw io.ReadWriter) *Conn {
	return &Conn{Order: &Order{}, rw: rw, Params: defaultParams(), loginPhase: true, tasks: map[uint32]*Task{}}
}

// NewEstablished wraps a transport whose login somebody else did: cmdSN is the
// next to use, expStatSN the next to expect.
func NewEstablished(rw io.ReadWriter, p Params, cmdSN, expStatSN uint32) *Conn {
	c := NewConn(rw)
	c.Params, c.loginPhase = p, false
	c.CmdSN, c.ExpStatSN, c.statSNKnown = cmdSN, expStatSN, true
	return c
}

// Transport returns what NewConn was given.
func (c *Conn) Transport() io.ReadWriter { return c.rw }

// Close drops the connection without logout.
func (c *Conn) Close() error {
	if closer, ok := c.rw.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// NewITT returns a fresh initiator task tag.
func (c *Conn) NewITT() uint32 {
	c.nextITT++
	return c.nextITT
}

// Send writes a PDU as it is, apart from lengths (unless KeepLengths), padding
// and the negotiated digests. It touches no sequence number.
func (c *Conn) Send(p *PDU) error {
	if !p.KeepLengths {
		p.setLengths()
	}
	if c.Corrupt != nil && !c.loginPhase {
		c.Corrupt(p)
	}
	c.out = c.appendPDU(c.out[:0], p)
	return c.SendBytes(c.out)
}

// SendBytes writes raw bytes, for what no PDU can express.
func (c *Conn) SendBytes(b []byte) error {
	if d, ok := c.rw.(interface{ SetWriteDeadline(time.Time) error }); ok {
		if err := d.SetWriteDeadline(time.Now().Add(c.timeout())); err != nil {
			return fmt.Errorf("set write deadline: %w", err)
		}
	}
	if _, err := c.rw.Write(b); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

func (c *Conn) appendPDU(b []byte, p *PDU) []byte {
	digests := !c.loginPhase
	start := len(b)
	b = append(b, p.BHS[:]...)
	b = appendPadded(b, p.AHS)
	if digests && c.Params.HeaderDigest {
		b = appendDigest(b, b[start:], p.BadHeaderDigest)
	}
	start = len(b)
	b = appendPadded(b, p.Data)
	if digests && c.Params.DataDigest && len(p.Data) > 0 {
		b = appendDigest(b, b[start:], p.BadDataDigest)
	}
	return b
}

func appendPadded(b, segment []byte) []byte {
	b = append(b, segment...)
	return append(b, make([]byte, padding(len(segment)))...)
}

// appendDigest appends the CRC32C of covered; RFC 7143 section 13.1 puts it on
// the wire least significant byte first.
func appendDigest(b, covered []byte, bad bool) []byte {
	sum := crc32.Checksum(covered, castagnoli)
	if bad {
		sum ^= 1
	}
	return binary.LittleEndian.AppendUint32(b, sum)
}

// Receive returns the next PDU of the target after checking everything that
// does not depend on a command. With a *Violation the PDU is returned as well.
// Zero means Conn.Timeout.
func (c *Conn) Receive(timeout time.Duration) (*PDU, error) {
	p, err := c.readWithin(timeout)
	if err != nil {
		return p, err
	}
	return p, c.Judge(p)
}

// readWithin returns the next PDU without a check; zero means Conn.Timeout.
func (c *Conn) readWithin(timeout time.Duration) (*PDU, error) {
	if timeout == 0 {
		timeout = c.timeout()
	}
	if err := c.setReadDeadline(timeout); err != nil {
		return nil, err
	}
	return c.readPDU()
}

func (c *Conn) timeout() time.Duration {
	if c.Timeout == 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

func (c *Conn) setReadDeadline(timeout time.Duration) error {
	d, ok := c.rw.(interface{ SetReadDeadline(time.Time) error })
	if !ok {
		return nil
	}
	// A closed pipe refuses deadlines, but the read says so better.
	if err := d.SetReadDeadline(time.Now().Add(timeout)); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("set read deadline: %w", err)
	}
	return nil
}

// readPDU frames one PDU. Bytes leave c.in only when the whole PDU is there, so
// that a timeout in its middle loses nothing.
func (c *Conn) readPDU() (*PDU, error) {
	if err := c.fill(headerLength); err != nil {
		return nil, err
	}
	p := &PDU{BHS: [headerLength]byte(c.in)}
	if err := c.judgeFrame(p); err != nil {
		return p, err
	}
	f := c.frameOf(p)
	if err := c.fill(f.end); err != nil {
		return nil, err
	}
	frame := c.in[:f.end]
	p.AHS = append([]byte(nil), frame[headerLength:f.ahsEnd]...)
	p.Data = append([]byte(nil), frame[f.data:f.data+p.dataLength()]...)
	err := c.judgeDigests(p, frame, f)
	c.in = c.in[:copy(c.in, c.in[f.end:])]
	return p, err
}

// frame holds the offsets of a PDU's parts: AHS ends at ahsEnd, data starts at
// data (after the header digest), its padding ends at dataEnd, all ends at end.
type frame struct{ ahsEnd, data, dataEnd, end int }

func (c *Conn) frameOf(p *PDU) frame {
	var f frame
	f.ahsEnd = headerLength + p.ahsLength()
	f.data = f.ahsEnd
	if !c.loginPhase && c.Params.HeaderDigest {
		f.data += 4
	}
	n := p.dataLength()
	f.dataEnd = f.data + n + padding(n)
	f.end = f.dataEnd
	if !c.loginPhase && c.Params.DataDigest && n > 0 {
		f.end += 4
	}
	return f
}

// fill reads until n bytes are buffered.
func (c *Conn) fill(n int) error {
	var chunk [16 << 10]byte
	for len(c.in) < n {
		// Not beyond n: what follows the last login response may already be
		// meant for the owner of a socket taken over by the load engine.
		got, err := c.rw.Read(chunk[:min(len(chunk), n-len(c.in))])
		c.in = append(c.in, chunk[:got]...)
		if err != nil && len(c.in) < n {
			return readError(err, len(c.in), n)
		}
	}
	return nil
}

func readError(err error, have, want int) error {
	var timeout net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%w: %d of %d bytes buffered", ErrTimeout, have, want)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe):
		return fmt.Errorf("%w: %d of %d bytes buffered", ErrClosed, have, want)
	}
	return fmt.Errorf("receive: %w", err)
}
