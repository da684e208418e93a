package thirdparty

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"lunar/target/scsi/sense"
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

// Medium is the logical unit that range descriptors are about.
type Medium struct {
	Blocks uint64
	Shift  uint // a logical block has 1<<Shift bytes
}

// Within returns the byte offset of an extent of n bytes, skip bytes behind lba, and
// whether it lies on the medium.
func (m Medium) Within(lba, skip, n uint64) (off uint64, ok bool) {
	if lba > m.Blocks {
		return 0, false
	}
	size := m.Blocks << m.Shift
	off = lba<<m.Shift + skip
	return off, off <= size && n <= size-off
}

// IsWhole reports whether the extent is of whole logical blocks.
func (m Medium) IsWhole(off, n uint64) bool { return (off|n)&(1<<m.Shift-1) == 0 }

// Populate is a parameter list of POPULATE TOKEN taken apart.
type Populate struct {
	Ranges  []Extent
	Timeout time.Duration // how long the token may be left unused
}

// ParsePopulate takes the list of POPULATE TOKEN apart.
func ParsePopulate(list []byte, m Medium) (p Populate, s *sense.Data) {
	if p.Ranges, s = m.ranges(list, populateHeader, 14); s != nil {
		return p, s
	}
	p.Timeout, s = tokenTimeout(list)
	switch {
	case s != nil:
	case list[2]&rodTypeValid != 0 && binary.BigEndian.Uint32(list[8:]) != changeVulnerable:
		s = sense.InvalidFieldInList(8, sense.NoBit)
	case len(p.Ranges) == 0:
		s = sense.InvalidFieldInList(populateHeader, sense.NoBit)
	}
	return p, s
}

// WriteUsing is a parameter list of WRITE USING TOKEN taken apart.
type WriteUsing struct {
	Ranges    []Extent
	Immediate bool
	Delete    bool   // the token is unknown afterwards
	Skip      uint64 // OFFSET INTO ROD, in blocks of the destination
	Token     []byte // lies in the list
}

// ParseWriteUsing takes the list of WRITE USING TOKEN apart.
func ParseWriteUsing(list []byte, m Medium) (w WriteUsing, s *sense.Data) {
	if w.Ranges, s = m.ranges(list, writeTokenHeader, 534); s != nil {
		return w, s
	}
	w.Immediate, w.Delete = list[2]&rodImmediate != 0, list[2]&rodDelete != 0
	w.Skip, w.Token = binary.BigEndian.Uint64(list[8:]), list[16:][:TokenLength]
	return w, nil
}

// ranges takes the range descriptors behind the header of a list apart.
// length is the offset of BLOCK DEVICE RANGE DESCRIPTOR LENGTH.
func (m Medium) ranges(list []byte, header, length int) ([]Extent, *sense.Data) {
	be := binary.BigEndian
	if len(list) < header+rangeDescriptor {
		return nil, sense.ParameterListLengthError
	}
	n := int(be.Uint16(list[length:]))
	switch {
	case int(be.Uint16(list)) < header-2+n: // DATA LENGTH
		return nil, sense.InvalidFieldInList(0, sense.NoBit)
	case n < rangeDescriptor:
		return nil, sense.InvalidFieldInList(length, sense.NoBit)
	case n > len(list)-header:
		return nil, sense.ParameterListLengthError
	case n/rangeDescriptor > MaxRanges:
		return nil, sense.TooManySegmentDescriptors
	}
	var ranges []Extent
	sum := int64(0)
	for d := list[header:][:n]; len(d) >= rangeDescriptor; d = d[rangeDescriptor:] {
		lba, blocks := be.Uint64(d), uint64(be.Uint32(d[8:]))
		off, ok := m.Within(lba, 0, blocks<<m.Shift)
		if !ok {
			return nil, sense.LBAOutOfRange
		}
		if blocks > 0 {
			ranges = append(ranges, Extent{int64(off), int64(blocks << m.Shift)})
			sum += int64(blocks << m.Shift)
		}
	}
	if sum > MaxBytes || overlap(ranges) {
		return nil, sense.InvalidFieldInList(header, sense.NoBit)
	}
	return ranges, nil
}

// overlap reports whether any two of the ranges have a block in common.
func overlap(ranges []Extent) bool {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Extent) int { return cmp.Compare(a.Off, b.Off) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Off < sorted[i-1].Off+sorted[i-1].N {
			return true
		}
	}
	return false
}

// tokenTimeout returns how long the token may be left unused.
func tokenTimeout(list []byte) (time.Duration, *sense.Data) {
	asked := time.Duration(binary.BigEndian.Uint32(list[4:])) * time.Second
	switch {
	case asked > maxTokenTimeout:
		return 0, sense.InvalidFieldInList(4, sense.NoBit)
	case asked == 0:
		return defaultTokenTimeout, nil
	}
	return asked, nil
}
