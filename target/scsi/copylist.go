package scsi

import "encoding/binary"

// EXTENDED COPY parameter lists (SPC-4 clause 6.4). LID1 has a header of 16
// bytes with a list identifier of 8 bits, LID4 one of 48 bytes with 32 bits;
// CSCD descriptors, segment descriptors and inline data follow.
const (
	copyHeaderLID1 = 16
	copyHeaderLID4 = 48
	cscdLength     = 32

	// The bounds of one list, as RECEIVE COPY OPERATING PARAMETERS tells them.
	maxCSCDs        = 16
	maxCopySegments = 64
	maxCopyList     = maxCSCDs*cscdLength + maxCopySegments*copyBlocksLength
	// maxCopyBytes is what one segment descriptor may move.
	maxCopyBytes = 256 << 20
)

// Descriptor type codes (SPC-4 clauses 6.4.5 and 6.4.6).
const (
	cscdIdentification = 0xe4
	copyBlocks         = 0x02 // block device to block device
	copyBlocksOffset   = 0x0a // the same with a length and offsets in bytes

	copyBlocksLength       = 28
	copyBlocksOffsetLength = 32
)

// LIST ID USAGE (SPC-4 clause 6.4.3).
const (
	listIDNone = 3 // the copy has no list identifier
)

// copyList is an EXTENDED COPY parameter list taken apart. The slices lie in
// the list.
type copyList struct {
	id        uint32
	usage     byte
	immediate bool
	cscds     []byte
	segments  []byte
	at        int // of cscds in the list, for field pointers
}

// copyListLID1 takes the list of EXTENDED COPY(LID1) apart.
func copyListLID1(list []byte) (copyList, *Sense) {
	if len(list) < copyHeaderLID1 {
		return copyList{}, ParameterListLengthError
	}
	be := binary.BigEndian
	l := copyList{id: uint32(list[0]), usage: list[1] >> 3 & 3, at: copyHeaderLID1}
	return l, l.cut(list, uint64(be.Uint16(list[2:])), uint64(be.Uint32(list[8:])), uint64(be.Uint32(list[12:])))
}

// copyListLID4 takes the list of EXTENDED COPY(LID4) apart.
func copyListLID4(list []byte) (copyList, *Sense) {
	if len(list) < copyHeaderLID4 {
		return copyList{}, ParameterListLengthError
	}
	if list[0] != 0x01 { // PARAMETER LIST FORMAT
		return copyList{}, InvalidFieldInList(0, 7)
	}
	be := binary.BigEndian
	l := copyList{id: be.Uint32(list[20:]), usage: list[1] >> 3 & 3, immediate: list[15]&0x01 != 0, at: copyHeaderLID4}
	return l, l.cut(list, uint64(be.Uint16(list[42:])), uint64(be.Uint16(list[44:])), uint64(be.Uint16(list[46:])))
}

// cut finds the descriptors, whose lengths the header tells.
func (l *copyList) cut(list []byte, cscds, segments, inline uint64) *Sense {
	body := list[l.at:]
	switch {
	case inline != 0:
		return InvalidFieldInList(l.at-4, NoBit) // no descriptor here uses inline data
	case cscds+segments > maxCopyList, cscds+segments > uint64(len(body)):
		return ParameterListLengthError
	case cscds%cscdLength != 0:
		return InvalidFieldInList(2, NoBit)
	case cscds/cscdLength > maxCSCDs:
		return TooManyTargetDescriptors
	}
	l.cscds, l.segments = body[:cscds], body[cscds:][:segments]
	return nil
}

// copySegment is one segment descriptor: what is to be copied from where to
// where, in bytes. Lengths of blocks become known with the CSCDs.
type copySegment struct {
	source, dest uint16 // indices of CSCD descriptors
	kind         byte
	ofDest       bool   // DC: blocks counts the destination's blocks
	blocks       uint64 // of copyBlocks
	bytes        uint64 // of copyBlocksOffset
	from, to     uint64 // LBAs
	skipFrom     uint64 // bytes behind them
	skipTo       uint64
}

// parseSegments takes all segment descriptors apart before anything is done.
func (l *copyList) parseSegments() ([]copySegment, *Sense) {
	var out []copySegment
	at := l.at + len(l.cscds)
	for rest := l.segments; len(rest) > 0; {
		n, known := segmentLength(rest[0])
		switch {
		case !known:
			return nil, UnsupportedSegmentType
		case len(rest) < n:
			return nil, ParameterListLengthError
		case int(binary.BigEndian.Uint16(rest[2:])) != n-4: // DESCRIPTOR LENGTH
			return nil, InvalidFieldInList(at+2, NoBit)
		case len(out) == maxCopySegments:
			return nil, TooManySegmentDescriptors
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

func parseSegment(d []byte) copySegment {
	be := binary.BigEndian
	s := copySegment{kind: d[0], ofDest: d[1]&0x02 != 0, source: be.Uint16(d[4:]), dest: be.Uint16(d[6:])}
	s.from, s.to = be.Uint64(d[12:]), be.Uint64(d[20:])
	if s.kind == copyBlocks {
		s.blocks = uint64(be.Uint16(d[10:]))
		return s
	}
	s.bytes = uint64(be.Uint32(d[8:]))
	s.skipFrom, s.skipTo = uint64(be.Uint16(d[28:])), uint64(be.Uint16(d[30:]))
	return s
}

// length returns the bytes that the segment moves.
func (s *copySegment) length(source, dest *LogicalUnit) uint64 {
	switch {
	case s.kind == copyBlocksOffset:
		return s.bytes
	case s.ofDest:
		return s.blocks << dest.blockShift
	}
	return s.blocks << source.blockShift
}
