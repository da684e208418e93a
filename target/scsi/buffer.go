package scsi

import (
	"bytes"
	"sync/atomic"

	"lunar/target/scsi/sense"
)

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

// read returns the parameter data of READ BUFFER.
func (b *buffers) read(mode, id byte, offset uint32) ([]byte, *sense.Data) {
	switch mode {
	case bufferData:
		if id != 0 {
			return nil, sense.InvalidFieldInCDB(2, 7)
		}
		if offset > bufferSize {
			return nil, sense.InvalidFieldInCDB(3, 7)
		}
		data := b.data.Load()
		if data == nil {
			data = new([bufferSize]byte)
		}
		return data[offset:], nil
	case bufferDescriptor:
		if id != 0 {
			return make([]byte, 4), nil // there is no such buffer
		}
		return []byte{0, 0, bufferSize >> 8, bufferSize & 0xff}, nil // OFFSET BOUNDARY: any
	case bufferEcho:
		echo := b.echo.Load()
		if echo == nil {
			return nil, sense.CommandSequenceError
		}
		return *echo, nil
	case bufferEchoDescriptor:
		return []byte{0, 0, bufferSize >> 8, bufferSize & 0xff}, nil
	}
	return nil, sense.InvalidFieldInCDB(1, 4)
}

// write takes the parameter list of WRITE BUFFER.
func (b *buffers) write(mode, id byte, offset uint32, list []byte) *sense.Data {
	switch {
	case mode != bufferData && mode != bufferEcho:
		return sense.InvalidFieldInCDB(1, 4)
	case mode == bufferData && id != 0:
		return sense.InvalidFieldInCDB(2, 7)
	case offset > bufferSize:
		return sense.InvalidFieldInCDB(3, 7)
	case len(list) > bufferSize || mode == bufferData && len(list) > bufferSize-int(offset):
		return sense.InvalidFieldInCDB(6, 7)
	case mode == bufferEcho:
		echo := bytes.Clone(list)
		b.echo.Store(&echo)
		return nil
	}
	data := new([bufferSize]byte)
	if old := b.data.Load(); old != nil {
		*data = *old
	}
	copy(data[offset:], list)
	b.data.Store(data)
	return nil
}
