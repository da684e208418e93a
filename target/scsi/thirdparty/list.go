package thirdparty

import (
	"encoding/binary"

	"lunar/target/scsi/sense"
)

// EXTENDED COPY parameter lists (SPC-4 clause 6.4). LID1 has a header of 16
// bytes with a list identifier of 8 bits, LID4 one of 48 bytes with 32 bits;
// CSCD descriptors, segment descriptors and inline data follow.
const (
	copyHeaderLID1 = 16
	copyHeaderLID4 = 48
	CSCDLength     = 32

	// The bounds of one list, as RECEIVE COPY OPERATING PARAMETERS tells them.
	MaxCSCDs    = 16
	MaxSegments = 64
	maxList     = MaxCSCDs*CSCDLength + MaxSegments*copyBlocksLength
	// MaxBytes is what one segment descriptor may move.
	MaxBytes = 256 << 20
)

// Descriptor type codes (SPC-4 clauses 6.4.5 and 6.4.6).
const (
	CSCDIdentification = 0xe4
	copyBlocks         = 0x02 // block device to block device
	copyBlocksOffset   = 0x0a // the same with a length and offsets in bytes

	copyBlocksLength       = 28
	copyBlocksOffsetLength = 32
)

// LIST ID USAGE (SPC-4 clause 6.4.3).
const (
	listIDNone = 3 // the copy has no list identifier
)

// List is an EXTENDED COPY parameter list taken apart. The slices lie in
// the list.
type List struct {
	ID        uint32
	Usage     byte // LIST ID USAGE
	Immediate bool
	CSCDs     []byte // descriptors
	At        int    // of CSCDs in the list, for field pointers
	segments  []byte
}

// ParseLID1 takes the list of EXTENDED COPY(LID1) apart.
func ParseLID1(list []byte) (List, *sense.Data) {
	if len(list) < copyHeaderLID1 {
		return List{}, sense.ParameterListLengthError
	}
	be := binary.BigEndian
	l := List{ID: uint32(list[0]), Usage: list[1] >> 3 & 3, At: copyHeaderLID1}
	return l, l.cut(list, uint64(be.Uint16(list[2:])), uint64(be.Uint32(list[8:])), uint64(be.Uint32(list[12:])))
}

// ParseLID4 takes the list of EXTENDED COPY(LID4) apart.
func ParseLID4(list []byte) (List, *sense.Data) {
	if len(list) < copyHeaderLID4 {
		return List{}, sense.ParameterListLengthError
	}
	if list[0] != 0x01 { // PARAMETER LIST FORMAT
		return List{}, sense.InvalidFieldInList(0, 7)
	}
	be := binary.BigEndian
	l := List{ID: be.Uint32(list[20:]), Usage: list[1] >> 3 & 3, Immediate: list[15]&0x01 != 0, At: copyHeaderLID4}
	return l, l.cut(list, uint64(be.Uint16(list[42:])), uint64(be.Uint16(list[44:])), uint64(be.Uint16(list[46:])))
}

// cut finds the descriptors, whose lengths the header tells.
func (l *List) cut(list []byte, cscds, segments, inline uint64) *sense.Data {
	body := list[l.At:]
	switch {
	case inline != 0:
		return sense.InvalidFieldInList(l.At-4, sense.NoBit) // no descriptor here uses inline data
	case cscds+segments > maxList, cscds+segments > uint64(len(body)):
		return sense.ParameterListLengthError
	case cscds%CSCDLength != 0:
		return sense.InvalidFieldInList(2, sense.NoBit)
	case cscds/CSCDLength > MaxCSCDs:
		return sense.TooManyTargetDescriptors
	}
	l.CSCDs, l.segments = body[:cscds], body[cscds:][:segments]
	return nil
}

// Segment is one segment descriptor: what is to be copied from where to
// where, in bytes. Lengths of blocks become known with the CSCDs.
type Segment struct {
	Source, Dest uint16 // indices of CSCD descriptors
	kind         byte
	ofDest       bool   // DC: blocks counts the destination's blocks
	blocks       uint64 // of copyBlocks
	bytes        uint64 // of copyBlocksOffset
	From, To     uint64 // LBAs
	SkipFrom     uint64 // bytes behind them
	SkipTo       uint64
}

// Segments takes all segment descriptors apart before anything is done.
func (l *List) Segments() ([]Segment, *sense.Data) {
	var out []Segment
	at := l.At + len(l.CSCDs)
	for rest := l.segments; len(rest) > 0; {
		n, known := segmentLength(rest[0])
		switch {
		case !known:
			return nil, sense.UnsupportedSegmentType
		case len(rest) < n:
			return nil, sense.ParameterListLengthError
		case int(binary.BigEndian.Uint16(rest[2:])) != n-4: // DESCRIPTOR LENGTH
			return nil, sense.InvalidFieldInList(at+2, sense.NoBit)
		case len(out) == MaxSegments:
			return nil, sense.TooManySegmentDescriptors
		}
		out = append(out, parseSegment(rest[:n]))
		rest, at = rest[n:], at+n
	}
	return out, nil
}

func segmentLength(code byte) (n int, known bool) {
	switch code {
	case copyBlocks:
		return copyBlocksLength, true
	case copyBlocksOffset:
		return copyBlocksOffsetLength, true
	}
	return 0, false
}

func parseSegment(d []byte) Segment {
	be := binary.BigEndian
	s := Segment{kind: d[0], ofDest: d[1]&0x02 != 0, Source: be.Uint16(d[4:]), Dest: be.Uint16(d[6:])}
	s.From, s.To = be.Uint64(d[12:]), be.Uint64(d[20:])
	if s.kind == copyBlocks {
		s.blocks = uint64(be.Uint16(d[10:]))
		return s
	}
	s.bytes = uint64(be.Uint32(d[8:]))
	s.SkipFrom, s.SkipTo = uint64(be.Uint16(d[28:])), uint64(be.Uint16(d[30:]))
	return s
}

// Length returns the bytes that the segment moves between units whose logical blocks
// have 1<<source and 1<<dest bytes.
func (s *Segment) Length(source, dest uint) uint64 {
	switch {
	case s.kind == copyBlocksOffset:
		return s.bytes
	case s.ofDest:
		return s.blocks << dest
	}
	return s.blocks << source
}
