package load

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/internal/initiator"
)

const (
	headerLength  = 48
	digestLength  = 4
	receiveLength = 256 << 10 // of the receive buffer: half of a usual L2 cache at most
	keptData      = 512       // of PDUs other than Data-In: sense, rejected header
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stream is the receiving state of a connection: a buffer, and how far the PDU
// is that its bytes are in the middle of. Data-In of any length passes through
// the buffer in pieces.
type stream struct {
	buffer  []byte
	have    int // bytes at the start of buffer that await more: part of a header or trailer
	pdu     initiator.PDU
	within  bool   // pdu's header is parsed and its end not reached
	left    int    // data bytes to come
	trailer int    // bytes of padding and data digest after the data
	crc     uint32 // of the data so far
	target  []byte // where the rest of the data goes; nil to drop it
	kept    [keptData]byte
}

// receive reads once and parses what came.
func (c *connection) receive() error {
	n, errno := evloop.Read(c.fd, c.buffer[c.have:])
	switch {
	case errno == unix.EAGAIN:
		return nil
	case errno != 0:
		return fmt.Errorf("receive: %w", errno)
	case n == 0:
		return fmt.Errorf("%w: %w", initiator.ErrClosed, io.ErrUnexpectedEOF)
	}
	c.owed -= n
	rest, err := c.parse(c.buffer[:c.have+n])
	c.have = copy(c.buffer, rest)
	return err
}

// parse consumes whole parts of PDUs and returns what is left over: less than a
// header or a trailer.
func (c *connection) parse(b []byte) ([]byte, error) {
	headerSize := headerLength
	if c.state.Params.HeaderDigest {
		headerSize += digestLength
	}
	for {
		if !c.within {
			if len(b) < headerSize {
				return b, nil
			}
			if err := c.begin(b[:headerSize]); err != nil {
				return nil, err
			}
			b = b[headerSize:]
		}
		b = b[c.consume(b):]
		if c.left > 0 || len(b) < c.trailer {
			return b, nil
		}
		trailer := b[:c.trailer]
		b = b[c.trailer:]
		if err := c.end(trailer); err != nil {
			return nil, err
		}
	}
}

// begin parses a header and decides where its data goes.
func (c *connection) begin(header []byte) error {
	p := &c.pdu
	p.BHS = [headerLength]byte(header)
	p.Data = nil
	if len(header) > headerLength {
		if err := checkDigest(p, "header", crc32.Checksum(p.BHS[:], castagnoli), header[headerLength:]); err != nil {
			return err
		}
	}
	n := int(p.U32(4) & (1<<24 - 1))
	if p.BHS[4] != 0 || n > c.state.Params.MaxRecvDataSegmentLength {
		return wrong(p, "13.12", "AHS of %d words and data of %d bytes, MaxRecvDataSegmentLength is %d",
			p.BHS[4], n, c.state.Params.MaxRecvDataSegmentLength)
	}
	c.within, c.left, c.trailer, c.crc = true, n, -n&3, 0
	if c.state.Params.DataDigest && n > 0 {
		c.trailer += digestLength
	}
	return c.place(p, n)
}

// place checks a Data-In PDU against its command and points target at where its
// data belongs. The data of other PDUs is kept as far as it fits.
func (c *connection) place(p *initiator.PDU, n int) error {
	if p.Opcode() != initiator.OpDataIn {
		c.target = c.kept[:]
		p.Data = c.kept[:min(n, keptData)]
		return nil
	}
	s, err := c.slotOf(p)
	if err != nil {
		return err
	}
	offset := int(p.U32(initiator.AtOffset))
	if s.op.write || p.U32(initiator.AtDataSN) != s.pdus || offset != s.moved || offset+n > s.bytes {
		return wrong(p, "11.7", "DataSN %d with bytes %d to %d, expected DataSN %d from %d up to %d",
			p.U32(initiator.AtDataSN), offset, offset+n, s.pdus, s.moved, s.bytes)
	}
	c.target = nil
	if c.engine.ledger != nil {
		c.target = s.buffer[offset : offset+n]
	}
	s.moved += n
	return nil
}

// consume takes data bytes from the front of b and returns how many.
func (c *connection) consume(b []byte) int {
	n := min(c.left, len(b))
	if n == 0 {
		return 0
	}
	c.left -= n
	if c.target != nil {
		c.target = c.target[copy(c.target, b[:n]):]
	}
	if c.state.Params.DataDigest {
		c.crc = crc32.Update(c.crc, castagnoli, b[:n])
	}
	return n
}

// end completes a PDU: data digest, sequence numbers, then its effect.
func (c *connection) end(trailer []byte) error {
	c.within = false
	if len(trailer) >= digestLength {
		pad := len(trailer) - digestLength
		crc := crc32.Update(c.crc, castagnoli, trailer[:pad])
		if err := checkDigest(&c.pdu, "data", crc, trailer[pad:]); err != nil {
			return err
		}
	}
	if err := c.state.Judge(&c.pdu); err != nil {
		return err
	}
	return c.take(&c.pdu)
}

func checkDigest(p *initiator.PDU, which string, computed uint32, digest []byte) error {
	if got := binary.LittleEndian.Uint32(digest); got != computed {
		return wrong(p, "13.1", "%s digest %#08x, computed %#08x", which, got, computed)
	}
	return nil
}
