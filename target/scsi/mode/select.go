package mode

import (
	"encoding/binary"
	"math"
	"math/bits"

	"lunar/target/scsi/sense"
)

// List is a MODE SELECT parameter list and where its parts lie.
type List struct {
	Data  []byte
	Ten   bool // MODE SELECT(10): eight byte header
	pages int  // offset of the first mode page
}

// Select returns the values with the mode pages of list stored in it, or says
// what is wrong with the list. It takes all pages or none.
func (m *Parameters) Select(list *List) (Values, *sense.Data) {
	next := *m.Values
	if len(list.Data) == 0 {
		return next, nil // not an error, nothing changes
	}
	if s := m.checkDescriptor(list); s != nil {
		return next, s
	}
	for at := list.pages; at < len(list.Data); {
		p, s := m.checkPage(list.Data, at)
		if s != nil {
			return next, s
		}
		p.store(list.Data[at:], &next)
		at += len(p.base)
	}
	return next, nil
}

// checkDescriptor finds the first page behind the header and a block
// descriptor, which may only say what is the case anyway (SBC-3 clause 6.5).
// The header's other fields are those of MODE SENSE and are not looked at.
func (m *Parameters) checkDescriptor(list *List) *sense.Data {
	header, lengthAt, length, long := 4, 3, 0, false
	if list.Ten {
		header, lengthAt = 8, 6
	}
	if len(list.Data) < header {
		return sense.ParameterListLengthError
	}
	if list.Ten {
		length = int(binary.BigEndian.Uint16(list.Data[6:]))
		long = list.Data[4]&0x01 != 0
	} else {
		length = int(list.Data[3])
	}
	if length != 0 && length != descriptorLength(long) {
		return sense.InvalidFieldInList(lengthAt, sense.NoBit)
	}
	list.pages = header + length
	if len(list.Data) < list.pages {
		return sense.ParameterListLengthError
	}
	if length == 0 {
		return nil
	}
	return m.checkBlocks(list.Data[header:list.pages], header)
}

func descriptorLength(long bool) int {
	if long {
		return longDescriptorLength
	}
	return shortDescriptorLength
}

// checkBlocks refuses a block descriptor, which lies at byte at of the list,
// that would change the capacity or the block length. Zero and all ones stand
// for the number of blocks that there are.
func (m *Parameters) checkBlocks(descriptor []byte, at int) *sense.Data {
	// LOGICAL BLOCK LENGTH has four bytes in a long descriptor, in a short one
	// three after a reserved byte.
	blocks, all, sizeAt, pointer := uint64(binary.BigEndian.Uint32(descriptor)), uint64(math.MaxUint32), 4, 5
	if len(descriptor) == longDescriptorLength {
		blocks, all, sizeAt, pointer = binary.BigEndian.Uint64(descriptor), math.MaxUint64, 12, 12
	}
	if blocks != 0 && blocks != all && blocks != m.Blocks {
		return sense.InvalidFieldInList(at, sense.NoBit)
	}
	if binary.BigEndian.Uint32(descriptor[sizeAt:]) != uint32(m.BlockSize) {
		return sense.InvalidFieldInList(at+pointer, sense.NoBit)
	}
	return nil
}

// checkPage checks the mode page at byte at: supported, complete, and equal to
// the current one but for bits that may be changed.
func (m *Parameters) checkPage(list []byte, at int) (*page, *sense.Data) {
	p, s := m.pageAt(list, at)
	if s != nil {
		return nil, s
	}
	var current, mask [maxPage]byte
	values := m.appendValues(current[:0], p, m.Values)
	changeable := p.appendMask(mask[:0], m.Values)
	for i := p.headerLength(); i < len(values); i++ {
		if wrong := (values[i] ^ list[at+i]) &^ changeable[i]; wrong != 0 {
			return nil, sense.InvalidFieldInList(at+i, bits.Len8(wrong)-1)
		}
	}
	return p, nil
}

// pageAt returns the supported page whose header lies at byte at of the list.
func (m *Parameters) pageAt(list []byte, at int) (*page, *sense.Data) {
	rest := list[at:]
	var subpage byte
	if rest[0]&subpageFormat != 0 && len(rest) > 1 {
		subpage = rest[1]
	}
	if rest[0]&0x80 != 0 {
		return nil, sense.InvalidFieldInList(at, 7) // PS is reserved in MODE SELECT
	}
	p := m.find(rest[0]&0x3f, subpage)
	if p == nil || p.base[0] != rest[0] {
		return nil, sense.InvalidFieldInList(at, 5)
	}
	header := p.headerLength()
	if len(rest) < header {
		return nil, sense.ParameterListLengthError
	}
	// PAGE LENGTH is the last byte of the header, or the last two.
	for i := header / 2; i < header; i++ {
		if rest[i] != p.base[i] {
			return nil, sense.InvalidFieldInList(at+header/2, sense.NoBit)
		}
	}
	if len(rest) < len(p.base) {
		return nil, sense.ParameterListLengthError
	}
	return p, nil
}

// CheckSelect refuses a CDB with SP, as nothing can be saved, and vendor specific
// lists (PF zero).
func CheckSelect(cdb []byte) *sense.Data {
	switch {
	case cdb[1]&0x01 != 0:
		return sense.InvalidFieldInCDB(1, 0)
	case cdb[1]&0x10 == 0:
		return sense.InvalidFieldInCDB(1, 4)
	}
	return nil
}
