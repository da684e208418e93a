package scsi

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"
)

// Parameter lists of POPULATE TOKEN and WRITE USING TOKEN (SBC-3 clauses 5.12
// and 5.59). Block device range descriptors of 16 bytes end both: an LBA of 8
// bytes, a number of logical blocks of 4.
const (
	populateHeader   = 16
	writeTokenHeader = 536
	rangeDescriptor  = 16

	rodImmediate = 0x01 // byte 2
	rodTypeValid = 0x02 // RTV, of POPULATE TOKEN
	rodDelete    = 0x02 // DEL_TKN, of WRITE USING TOKEN
)

// rangesOf takes the range descriptors behind the header of a list apart.
// length is the offset of BLOCK DEVICE RANGE DESCRIPTOR LENGTH.
func (c *Command) rangesOf(header, length int) ([]byteRange, *Sense) {
	be, list := binary.BigEndian, c.List()
	if len(list) < header+rangeDescriptor {
		return nil, ParameterListLengthError
	}
	n := int(be.Uint16(list[length:]))
	switch {
	case int(be.Uint16(list)) < header-2+n: // DATA LENGTH
		return nil, InvalidFieldInList(0, NoBit)
	case n < rangeDescriptor:
		return nil, InvalidFieldInList(length, NoBit)
	case n > len(list)-header:
		return nil, ParameterListLengthError
	case n/rangeDescriptor > maxTokenRanges:
		return nil, TooManySegmentDescriptors
	}
	lu := c.Nexus.LU
	var ranges []byteRange
	sum := int64(0)
	for d := list[header:][:n]; len(d) >= rangeDescriptor; d = d[rangeDescriptor:] {
		lba, blocks := be.Uint64(d), uint64(be.Uint32(d[8:]))
		off, ok := lu.within(lba, 0, blocks<<lu.blockShift)
		if !ok {
			return nil, LBAOutOfRange
		}
		if blocks > 0 {
			ranges = append(ranges, byteRange{int64(off), int64(blocks << lu.blockShift)})
			sum += int64(blocks << lu.blockShift)
		}
	}
	if sum > maxCopyBytes || overlap(ranges) {
		return nil, InvalidFieldInList(header, NoBit)
	}
	return ranges, nil
}

// overlap reports whether any two of the ranges have a block in common.
func overlap(ranges []byteRange) bool {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b byteRange) int { return cmp.Compare(a.off, b.off) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].off < sorted[i-1].off+sorted[i-1].n {
			return true
		}
	}
	return false
}

// tokenTimeout returns how long the token may be left unused.
func tokenTimeout(list []byte) (time.Duration, *Sense) {
	asked := time.Duration(binary.BigEndian.Uint32(list[4:])) * time.Second
	switch {
	case asked > maxTokenTimeout:
		return 0, InvalidFieldInList(4, NoBit)
	case asked == 0:
		return defaultTokenTimeout, nil
	}
	return asked, nil
}
