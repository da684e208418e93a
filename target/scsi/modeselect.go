package scsi

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// modeList is a MODE SELECT parameter list and where its parts lie.
type modeList struct {
	data  []byte
	ten   bool // MODE SELECT(10): eight byte header
	pages int  // offset of the first mode page
}

// selectModes returns state with the mode pages of list stored in it, or says
// what is wrong with the list. It takes all pages or none.
func (m *modeParameters) selectModes(list *modeList) (State, *Sense) {
	next := *m.state
	if len(list.data) == 0 {
		return next, nil // not an error, nothing changes
	}
	if sense := m.checkDescriptor(list); sense != nil {
		return next, sense
	}
	for at := list.pages; at < len(list.data); {
		page, sense := m.checkPage(list.data, at)
		if sense != nil {
			return next, sense
		}
		page.store(list.data[at:], &next)
		at += len(page.base)
	}
	return next, nil
}

// checkDescriptor finds the first page behind the header and a block
// descriptor, which may only say what is the case anyway (SBC-3 clause 6.5).
// The header's other fields are those of MODE SENSE and are not looked at.
func (m *modeParameters) checkDescriptor(list *modeList) *Sense {
	header, lengthAt, length, long := 4, 3, 0, false
	if list.ten {
		header, lengthAt = 8, 6
	}
	if len(list.data) < header {
		return ParameterListLengthError
	}
	if list.ten {
		length = int(binary.BigEndian.Uint16(list.data[6:]))
		long = list.data[4]&0x01 != 0
	} else {
		length = int(list.data[3])
	}
	if length != 0 && length != descriptorLength(long) {
		return InvalidFieldInList(lengthAt, NoBit)
	}
	list.pages = header + length
	if len(list.data) < list.pages {
		return ParameterListLengthError
	}
	if length == 0 {
		return nil
	}
	return m.checkBlocks(list.data[header:list.pages], header)
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
func (m *modeParameters) checkBlocks(descriptor []byte, at int) *Sense {
	// LOGICAL BLOCK LENGTH has four bytes in a long descriptor, in a short one
	// three after a reserved byte.
	blocks, all, sizeAt, pointer := uint64(binary.BigEndian.Uint32(descriptor)), uint64(math.MaxUint32), 4, 5
	if len(descriptor) == longDescriptorLength {
		blocks, all, sizeAt, pointer = binary.BigEndian.Uint64(descriptor), math.MaxUint64, 12, 12
	}
	if blocks != 0 && blocks != all && blocks != m.state.Blocks {
		return InvalidFieldInList(at, NoBit)
	}
	if binary.BigEndian.Uint32(descriptor[sizeAt:]) != uint32(m.config.BlockSize) {
		return InvalidFieldInList(at+pointer, NoBit)
	}
	return nil
}

// checkPage checks the mode page at byte at: supported, complete, and equal to
// the current one but for bits that may be changed.
func (m *modeParameters) checkPage(list []byte, at int) (*modePage, *Sense) {
	page, sense := m.pageAt(list, at)
	if sense != nil {
		return nil, sense
	}
	var current, mask [maxModePage]byte
	values := m.appendValues(current[:0], page, m.state)
	changeable := page.appendMask(mask[:0], m.state)
	for i := page.headerLength(); i < len(values); i++ {
		if wrong := (values[i] ^ list[at+i]) &^ changeable[i]; wrong != 0 {
			return nil, InvalidFieldInList(at+i, bits.Len8(wrong)-1)
		}
	}
	return page, nil
}

// pageAt returns the supported page whose header lies at byte at of the list.
func (m *modeParameters) pageAt(list []byte, at int) (*modePage, *Sense) {
	rest := list[at:]
	var subpage byte
	if rest[0]&subpageFormat != 0 && len(rest) > 1 {
		subpage = rest[1]
	}
	if rest[0]&0x80 != 0 {
		return nil, InvalidFieldInList(at, 7) // PS is reserved in MODE SELECT
	}
	page := m.find(rest[0]&0x3f, subpage)
	if page == nil || page.base[0] != rest[0] {
		return nil, InvalidFieldInList(at, 5)
	}
	header := page.headerLength()
	if len(rest) < header {
		return nil, ParameterListLengthError
	}
	// PAGE LENGTH is the last byte of the header, or the last two.
	for i := header / 2; i < header; i++ {
		if rest[i] != page.base[i] {
			return nil, InvalidFieldInList(at+header/2, NoBit)
		}
	}
	if len(rest) < len(page.base) {
		return nil, ParameterListLengthError
	}
	return page, nil
}

// storeModes stores list in the logical unit's state, as one step for all
// initiators.
func (lu *LogicalUnit) storeModes(n *Nexus, list *modeList) (before, after State, sense *Sense) {
	lu.update(func(s *State) {
		before = *s
		after, sense = lu.modeParameters(n, s).selectModes(list)
		if sense == nil {
			*s = after
		}
	})
	return before, after, sense
}

func runModeSelect6(c *Command)  { c.modeSelect(false) }
func runModeSelect10(c *Command) { c.modeSelect(true) }

// modeSelect tells the other initiators of a change, and empties the volatile
// cache when WCE goes from one to zero (SBC-3 clause 6.5).
func (c *Command) modeSelect(ten bool) {
	if sense := checkModeSelect(&c.CDB); sense != nil {
		c.Fail(sense)
		return
	}
	lu := c.Nexus.LU
	if lu.state.Load().ReadOnly {
		c.Fail(WriteProtected)
		return
	}
	before, after, sense := lu.storeModes(c.Nexus, &modeList{data: c.List(), ten: ten})
	if sense != nil {
		c.Fail(sense)
		return
	}
	if before != after {
		lu.Attention(ASCModeParametersChanged, c.Nexus)
	}
	if before.WriteCache && !after.WriteCache {
		c.flushThen((*Command).Good)
		return
	}
	c.Good()
}

// checkModeSelect refuses SP, as nothing can be saved, and vendor specific
// lists (PF zero).
func checkModeSelect(cdb *CDB) *Sense {
	switch {
	case cdb[1]&0x01 != 0:
		return InvalidFieldInCDB(1, 0)
	case cdb[1]&0x10 == 0:
		return InvalidFieldInCDB(1, 4)
	}
	return nil
}
