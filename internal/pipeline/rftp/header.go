package rftp

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// HeaderSize is the length of a block's header, in front of its payload, in bytes.
const HeaderSize = 32

// FrontSize is the length of what is in front of a payload: its header, and behind that the
// digest that it has where it was loaded.
const FrontSize = HeaderSize + SumSize

// Header is the header of a block.
type Header struct {
	Session  uint32
	Length   uint32 // bytes of the payload
	Sequence uint64
	Offset   uint64 // bytes from the start of the data set
	CRC      uint32 // Castagnoli, of the payload as it is on the wire; 0 of one that a cipher protects
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is that of a payload.
func Checksum(payload []byte) uint32 { return crc32.Checksum(payload, castagnoli) }

// Put writes the header into b.
func (h *Header) Put(b []byte) {
	binary.BigEndian.PutUint32(b, h.Session)
	binary.BigEndian.PutUint32(b[4:], h.Length)
	binary.BigEndian.PutUint64(b[8:], h.Sequence)
	binary.BigEndian.PutUint64(b[16:], h.Offset)
	binary.BigEndian.PutUint32(b[24:], h.CRC)
	binary.BigEndian.PutUint32(b[28:], 0)
}

// ParseHeader reads a header from b, which has HeaderSize bytes. The payload has at most
// most bytes.
func ParseHeader(b []byte, session uint32, most int) (Header, error) {
	h := Header{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint32(b[24:])}
	switch {
	case h.Session != session:
		return h, fmt.Errorf("block %d: found session %d, expected %d", h.Sequence, h.Session, session)
	case int64(h.Length) > int64(most) || h.Length == 0:
		return h, fmt.Errorf("block %d: found %d bytes, expected 1 to %d", h.Sequence, h.Length, most)
	case binary.BigEndian.Uint32(b[28:]) != 0:
		return h, fmt.Errorf("block %d: found a header whose last word is not zero", h.Sequence)
	}
	return h, nil
}
