package scsi

import (
	"encoding/binary"
	"math"

	"lunar/backstore/protect"
)

// Page control of MODE SENSE (SPC-4 clause 6.13).
const (
	pcCurrent    = 0
	pcChangeable = 1
	pcDefault    = 2
	pcSaved      = 3
)

// DEVICE-SPECIFIC PARAMETER of the mode parameter header (SBC-3 clause 6.5).
const (
	modeWriteProtected = 0x80 // WP
	modeDPOFUA         = 0x10 // DPO and FUA are supported
)

// modeParameters is all that MODE SENSE data is made from.
type modeParameters struct {
	config    *LUConfig
	state     *State
	defaults  *State
	protected bool   // WP
	threshold uint32 // soft threshold in threshold sets; 0: there is none
}

// modeRequest is a decoded MODE SENSE CDB.
type modeRequest struct {
	ten           bool // MODE SENSE(10): eight byte header
	noDescriptor  bool // DBD
	long          bool // LLBAA: a long LBA block descriptor is welcome
	control       byte // PC
	page, subpage byte
}

func modeRequestOf(cdb *CDB) modeRequest {
	ten := cdb[0] == 0x5a
	return modeRequest{
		ten:          ten,
		noDescriptor: cdb[1]&0x08 != 0,
		long:         ten && cdb[1]&0x10 != 0,
		control:      cdb[2] >> 6,
		page:         cdb[2] & 0x3f,
		subpage:      cdb[3],
	}
}

// senseData returns the whole answer to r.
func (m *modeParameters) senseData(r modeRequest) ([]byte, *Sense) {
	if r.control == pcSaved {
		return nil, SaveNotSupported
	}
	var descriptor []byte
	if !r.noDescriptor {
		descriptor = m.blockDescriptor(r.long)
	}
	data := m.header(r, len(descriptor))
	headerLength := len(data)
	data = append(data, descriptor...)
	pagesAt := len(data)
	data = m.appendPages(data, r)
	if len(data) == pagesAt {
		return nil, m.unsupportedPage(r)
	}
	putModeDataLength(data, headerLength)
	return data, nil
}

// unsupportedPage points at the field of the CDB that r is refused for: the
// subpage code if the page as such exists.
func (m *modeParameters) unsupportedPage(r modeRequest) *Sense {
	if r.page == allPages || m.find(r.page, 0) != nil {
		return InvalidFieldInCDB(3, 7)
	}
	return InvalidFieldInCDB(2, 5)
}

// header returns the mode parameter header (SPC-4 clause 7.5) but for MODE
// DATA LENGTH.
func (m *modeParameters) header(r modeRequest, descriptorLength int) []byte {
	parameter := byte(modeDPOFUA)
	if m.protected {
		parameter |= modeWriteProtected
	}
	if !r.ten {
		return []byte{0, 0, parameter, byte(descriptorLength)}
	}
	var longLBA byte
	if descriptorLength == longDescriptorLength {
		longLBA = 0x01
	}
	return []byte{0, 0, 0, parameter, longLBA, 0, 0, byte(descriptorLength)}
}

// putModeDataLength fills in how many bytes follow MODE DATA LENGTH.
func putModeDataLength(data []byte, headerLength int) {
	if headerLength == 4 {
		data[0] = byte(len(data) - 1)
		return
	}
	binary.BigEndian.PutUint16(data, uint16(len(data)-2))
}

// Lengths of the block descriptors in bytes (SBC-3 clause 6.5).
const (
	shortDescriptorLength = 8
	longDescriptorLength  = 16
)

// blockDescriptor returns the number and length of the logical blocks. The
// short one says FFFFFFFFh for a number that does not fit.
func (m *modeParameters) blockDescriptor(long bool) []byte {
	if long {
		d := binary.BigEndian.AppendUint64(nil, m.state.Blocks)
		return binary.BigEndian.AppendUint64(d, uint64(m.config.BlockSize))
	}
	blocks := uint32(min(m.state.Blocks, math.MaxUint32))
	d := binary.BigEndian.AppendUint32(nil, blocks)
	return binary.BigEndian.AppendUint32(d, uint32(m.config.BlockSize))
}

// appendPages appends every page that r asks for, in ascending order.
func (m *modeParameters) appendPages(dst []byte, r modeRequest) []byte {
	for i := range modePages {
		if page := &modePages[i]; r.wants(page) && m.supports(page) {
			dst = m.appendPage(dst, page, r.control)
		}
	}
	return dst
}

func (m *modeParameters) appendPage(dst []byte, page *modePage, control byte) []byte {
	switch control {
	case pcChangeable:
		return page.appendMask(dst, m.state)
	case pcDefault:
		return m.appendValues(dst, page, m.defaults)
	}
	return m.appendValues(dst, page, m.state)
}

// wants reports whether r names page: page code 3Fh and subpage code FFh stand
// for all of them (SPC-4 clause 6.13).
func (r modeRequest) wants(page *modePage) bool {
	return (r.page == page.code || r.page == allPages) &&
		(r.subpage == page.subpage || r.subpage == allSubpages) &&
		!(r.page == allPages && r.subpage != 0 && r.subpage != allSubpages)
}

func runModeSense6(c *Command) {
	data, sense := c.modeParameters().senseData(modeRequestOf(&c.CDB))
	c.answer(data, uint32(c.CDB[4]), sense)
}

func runModeSense10(c *Command) {
	data, sense := c.modeParameters().senseData(modeRequestOf(&c.CDB))
	c.answer(data, uint32(binary.BigEndian.Uint16(c.CDB[7:])), sense)
}

func (c *Command) modeParameters() *modeParameters {
	lu := c.Nexus.LU
	return lu.modeParameters(c.Nexus, lu.State())
}

// defaultState returns the state before any MODE SELECT, with the settings of s.
// Its Blocks are not set: they are no mode parameter.
func (lu *LogicalUnit) defaultState(s *State) *State {
	return &State{
		WriteCache: lu.traits().info.VolatileCache && !s.WriteThrough, OwnTags: lu.protect != protect.None,
		WriteThrough: s.WriteThrough, ReadOnly: s.ReadOnly,
	}
}

// modeParameters returns what mode data for n in state is made from.
func (lu *LogicalUnit) modeParameters(n *Nexus, state *State) *modeParameters {
	return &modeParameters{
		config:    &lu.config,
		state:     state,
		defaults:  lu.defaultState(state),
		protected: lu.protection(n, state) != nil,
		threshold: lu.thresholdSets(),
	}
}
