package load

import (
	"encoding/binary"
	"hash/crc32"

	"lunar/internal/initiator"
)

// header reserves a header, cleared but for opcode, flags, data length and
// ExpStatSN, with room for its digest; nil when the outbox is full.
func (c *connection) header(opcode, flags byte, data int) []byte {
	n := headerLength
	if c.state.Params.HeaderDigest {
		n += digestLength
	}
	h := c.outbox.header(n)
	if h == nil {
		return nil
	}
	clear(h)
	h[0], h[1] = opcode, flags
	h[5], h[6], h[7] = byte(data>>16), byte(data>>8), byte(data)
	put(h, initiator.AtExpStatSN, c.state.ExpStatSN)
	return h
}

func (c *connection) sealHeader(h []byte) {
	if len(h) > headerLength {
		binary.LittleEndian.PutUint32(h[headerLength:], crc32.Checksum(h[:headerLength], castagnoli))
	}
}

// seal completes a PDU: header digest, data by reference, padding and data
// digest.
func (c *connection) seal(h, data []byte) error {
	c.sealHeader(h)
	if len(data) == 0 {
		return nil
	}
	if !c.outbox.data(data) {
		return errOutboxFull
	}
	pad := -len(data) & 3
	n := pad
	if c.state.Params.DataDigest {
		n += digestLength
	}
	if n == 0 {
		return nil
	}
	trailer := c.outbox.header(n)
	if trailer == nil {
		return errOutboxFull
	}
	clear(trailer)
	if n > pad {
		crc := crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, trailer[:pad])
		binary.LittleEndian.PutUint32(trailer[pad:], crc)
	}
	return nil
}
