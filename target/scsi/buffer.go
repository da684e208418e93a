package scsi

import "sync/atomic"

// Modes of READ BUFFER and WRITE BUFFER (SPC-4 clauses 6.15 and 6.49).
const (
	bufferData           = 0x02
	bufferDescriptor     = 0x03
	bufferEcho           = 0x0a
	bufferEchoDescriptor = 0x0b
)

// bufferSize is the length of a nexus's echo buffer and of its buffer 0, in
// bytes. They are for tests of the way to the logical unit: what an initiator
// writes it can read again.
const bufferSize = 4096

// buffers are those of one nexus.
type buffers struct {
	data atomic.Pointer[[bufferSize]byte]
	echo atomic.Pointer[[]byte] // as long as what was written last
}

// bufferField is a number of three bytes.
func bufferField(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func runReadBuffer(c *Command) {
	data, s := c.Nexus.readBuffer(c.CDB[1]&0x1f, c.CDB[2], bufferField(c.CDB[3:]))
	c.answer(data, bufferField(c.CDB[6:]), s)
}

func (n *Nexus) readBuffer(mode, id byte, offset uint32) ([]byte, *Sense) {
	switch mode {
	case bufferData:
		if id != 0 {
			return nil, InvalidFieldInCDB(2, 7)
		}
		if offset > bufferSize {
			return nil, InvalidFieldInCDB(3, 7)
		}
		b := n.buffers.data.Load()
		if b == nil {
			b = new([bufferSize]byte)
		}
		return b[offset:], nil
	case bufferDescriptor:
		if id != 0 {
			return make([]byte, 4), nil // there is no such buffer
		}
		return []byte{0, 0, bufferSize >> 8, bufferSize & 0xff}, nil // OFFSET BOUNDARY: any
	case bufferEcho:
		b := n.buffers.echo.Load()
		if b == nil {
			return nil, CommandSequenceError
		}
		return *b, nil
	case bufferEchoDescriptor:
		return []byte{0, 0, bufferSize >> 8, bufferSize & 0xff}, nil
	}
	return nil, InvalidFieldInCDB(1, 4)
}

func runWriteBuffer(c *Command) {
	if s := c.Nexus.writeBuffer(c.CDB[1]&0x1f, c.CDB[2], bufferField(c.CDB[3:]), c.List()); s != nil {
		c.Fail(s)
		return
	}
	c.Good()
}

func (n *Nexus) writeBuffer(mode, id byte, offset uint32, list []byte) *Sense {
	switch {
	case mode != bufferData && mode != bufferEcho:
		return InvalidFieldInCDB(1, 4)
	case mode == bufferData && id != 0:
		return InvalidFieldInCDB(2, 7)
	case offset > bufferSize:
		return InvalidFieldInCDB(3, 7)
	case len(list) > bufferSize || mode == bufferData && len(list) > bufferSize-int(offset):
		return InvalidFieldInCDB(6, 7)
	case mode == bufferEcho:
		b := append([]byte(nil), list...)
		n.buffers.echo.Store(&b)
		return nil
	}
	b := new([bufferSize]byte)
	if old := n.buffers.data.Load(); old != nil {
		*b = *old
	}
	copy(b[offset:], list)
	n.buffers.data.Store(b)
	return nil
}
