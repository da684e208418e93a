package bulk

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"lunar/internal/pipeline"
	"lunar/internal/pipeline/rftp"
)

// The memory of a block: a page whose end is the header and the digest, the payload, and a
// page whose begin is the tag. The payload is aligned to pages, for direct I/O.
const (
	page   = 4096
	lead   = page - rftp.FrontSize // where the frame begins
	tag    = 16
	stride = page + BlockSize + page
	frame  = rftp.FrontSize + BlockSize + tag // the longest
)

// payload is a block's data.
func payload(b *pipeline.Block) []byte { return b.Memory[page : page+b.Length : page+b.Length] }

// framed is what goes over the network.
func framed(b *pipeline.Block, sealed bool) []byte {
	n := rftp.FrontSize + b.Length
	if sealed {
		n += tag
	}
	return b.Memory[lead : lead+n : lead+n]
}

// errDamaged says that a block is not as it was sent.
var errDamaged = errors.New("found a block that was altered on its way")

// sealer enciphers blocks, with AES-256-GCM; nil: not. The nonce is session and sequence,
// which a key sees together once only: no sequence is used again in a session, and each
// session has a key of its own.
type sealer struct{ aead cipher.AEAD }

// newSealer makes one of a key; none without.
func newSealer(key []byte) (*sealer, error) {
	if key == nil {
		return nil, nil
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead}, err
}

func nonce(h *rftp.Header) (n [12]byte) {
	binary.BigEndian.PutUint32(n[:], h.Session)
	binary.BigEndian.PutUint64(n[4:], h.Sequence)
	return n
}

// seal makes the frame of a block whose payload and digest are there. What is in front of the
// payload is authenticated.
func (s *sealer) seal(b *pipeline.Block) {
	h := rftp.Header{Session: b.Session, Length: uint32(b.Length), Sequence: b.Sequence, Offset: uint64(b.Offset)}
	if s == nil {
		h.CRC = rftp.Checksum(payload(b))
	}
	head := b.Memory[lead:page]
	h.Put(head)
	copy(head[rftp.HeaderSize:], b.Digest[:])
	if s != nil {
		n := nonce(&h)
		s.aead.Seal(b.Memory[page:page], n[:], payload(b), head)
	}
}

// open gets the payload of a frame that has arrived, for a volume of size bytes. The block
// has length, offset and digest then: who has the key says so, and it is compared with the
// payload when that was stored and is read again.
func (s *sealer) open(b *pipeline.Block, session uint32, size int64) error {
	head := b.Memory[lead:page]
	h, err := rftp.ParseHeader(head, session, BlockSize)
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	b.Session, b.Sequence, b.Offset, b.Length = h.Session, h.Sequence, int64(h.Offset), int(h.Length)
	copy(b.Digest[:], head[rftp.HeaderSize:])
	if s != nil {
		n := nonce(&h)
		if _, err := s.aead.Open(b.Memory[page:page], n[:], b.Memory[page:page+b.Length+tag], head); err != nil {
			return fmt.Errorf("%w: %w", errDamaged, err)
		}
	} else if rftp.Checksum(payload(b)) != h.CRC {
		return errDamaged
	}
	if b.Offset < 0 || b.Offset%BlockSize != 0 || b.Offset >= size || b.Length != lengthOf(size, b.Offset/BlockSize) {
		return fmt.Errorf("found a block of %d bytes at %d, expected one of a volume of %d bytes", b.Length, b.Offset, size)
	}
	return nil
}
