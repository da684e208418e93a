package pdu

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// AHSType says what an additional header segment carries (RFC 7143 11.2.2.1).
type AHSType uint8

const (
	// AHSExtendedCDB holds the CDB bytes after the sixteenth (RFC 7143 11.2.2.3).
	AHSExtendedCDB AHSType = 1
	// AHSBidirectionalReadLength holds the Expected Bidirectional Read Data
	// Transfer Length (RFC 7143 11.2.2.4).
	AHSBidirectionalReadLength AHSType = 2
)

// ErrAHS is the class of every error about additional header segments.
var ErrAHS = errors.New("malformed additional header segment")

// AHS is one additional header segment (RFC 7143 11.2.2):
//
//	0-1  AHSLength: bytes from byte 3 on, without padding
//	2    AHSType
//	3    AHS-specific, the first of the counted bytes
//	4-   AHS-specific, then padding to a multiple of 4
type AHS struct {
	Type     AHSType
	Specific byte   // byte 3
	Data     []byte // bytes 4 and on, without padding; aliases the parsed bytes
}

// AHSIterator walks the additional header segments of one PDU. The zero value
// is empty; it holds no copy of the bytes.
type AHSIterator struct {
	rest []byte
	err  error
}

// IterateAHS starts at the first of the segments in ahs, which must be the
// TotalAHSLength bytes that follow the BHS.
func IterateAHS(ahs []byte) AHSIterator { return AHSIterator{rest: ahs} }

// Next returns the next segment; ok is false at the end and at an error, which
// Err then tells.
func (it *AHSIterator) Next() (segment AHS, ok bool) {
	if len(it.rest) == 0 || it.err != nil {
		return AHS{}, false
	}
	if len(it.rest) < 4 {
		it.err = fmt.Errorf("%w: %d bytes left, expected at least 4", ErrAHS, len(it.rest))
		return AHS{}, false
	}
	length := int(binary.BigEndian.Uint16(it.rest))
	end := 3 + length
	padded := end + Padding(end)
	if length == 0 || padded > len(it.rest) {
		it.err = fmt.Errorf("%w: AHSLength %d, expected 1 to %d", ErrAHS, length, len(it.rest)-3)
		return AHS{}, false
	}
	segment = AHS{Type: AHSType(it.rest[2]), Specific: it.rest[3], Data: it.rest[4:end]}
	it.rest = it.rest[padded:]
	return segment, true
}

// Err is the error that ended the walk, which wraps ErrAHS, or nil.
func (it *AHSIterator) Err() error { return it.err }

// FindAHS returns the first segment of type t. It walks all segments, so that
// err, which wraps ErrAHS, tells of a malformed one wherever it stands.
func FindAHS(ahs []byte, t AHSType) (segment AHS, found bool, err error) {
	it := IterateAHS(ahs)
	for s, ok := it.Next(); ok; s, ok = it.Next() {
		if s.Type == t && !found {
			segment, found = s, true
		}
	}
	return segment, found, it.Err()
}

// BidirectionalReadLength is the Expected Bidirectional Read Data Transfer
// Length in bytes, when ahs has one. Its error wraps ErrAHS.
func BidirectionalReadLength(ahs []byte) (length uint32, found bool, err error) {
	s, found, err := FindAHS(ahs, AHSBidirectionalReadLength)
	if err != nil || !found {
		return 0, false, err
	}
	if len(s.Data) != 4 {
		return 0, false, fmt.Errorf("%w: bidirectional read length has %d bytes, expected 4", ErrAHS, len(s.Data))
	}
	return binary.BigEndian.Uint32(s.Data), true, nil
}
