package mode

import (
	"encoding/binary"
	"math"

	"lunar/target/scsi/sense"
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

// Parameters is all that mode data is made from.
type Parameters struct {
	BlockSize int    // logical block length in bytes
	Blocks    uint64 // capacity in logical blocks
	Values    *Values
	Defaults  *Values
	Protected bool   // WP
	Threshold uint32 // soft threshold in threshold sets; 0: there is none
}

// Request is a decoded MODE SENSE CDB.
type Request struct {
	ten           bool // MODE SENSE(10): eight byte header
	noDescriptor  bool // DBD
	long          bool // LLBAA: a long LBA block descriptor is welcome
	control       byte // PC
	page, subpage byte
}

// ParseSense decodes a CDB of MODE SENSE.
func ParseSense(cdb []byte) Request {
	ten := cdb[0] == 0x5a
	return Request{
		ten:          ten,
		noDescriptor: cdb[1]&0x08 != 0,
		long:         ten && cdb[1]&0x10 != 0,
		control:      cdb[2] >> 6,
		page:         cdb[2] & 0x3f,
		subpage:      cdb[3],
	}
}

// Sense returns the whole answer to r.
func (m *Parameters) Sense(r Request) ([]byte, *sense.Data) {
	if r.control == pcSaved {
		return nil, sense.SaveNotSupported
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
func (m *Parameters) unsupportedPage(r Request) *sense.Data {
	if r.page == AllPages || m.find(r.page, 0) != nil {
		return sense.InvalidFieldInCDB(3, 7)
	}
	return sense.InvalidFieldInCDB(2, 5)
}

// header returns the mode parameter header (SPC-4 clause 7.5) but for MODE
// DATA LENGTH.
func (m *Parameters) header(r Request, descriptorLength int) []byte {
	parameter := byte(modeDPOFUA)
	if m.Protected {
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
func (m *Parameters) blockDescriptor(long bool) []byte {
	if long {
		d := binary.BigEndian.AppendUint64(nil, m.Blocks)
		return binary.BigEndian.AppendUint64(d, uint64(m.BlockSize))
	}
	blocks := uint32(min(m.Blocks, math.MaxUint32))
	d := binary.BigEndian.AppendUint32(nil, blocks)
	return binary.BigEndian.AppendUint32(d, uint32(m.BlockSize))
}

// appendPages appends every page that r asks for, in ascending order.
func (m *Parameters) appendPages(dst []byte, r Request) []byte {
	for i := range pages {
		if p := &pages[i]; r.wants(p) && m.supports(p) {
			dst = m.appendPage(dst, p, r.control)
		}
	}
	return dst
}

func (m *Parameters) appendPage(dst []byte, p *page, control byte) []byte {
	switch control {
	case pcChangeable:
		return p.appendMask(dst, m.Values)
	case pcDefault:
		return m.appendValues(dst, p, m.Defaults)
	}
	return m.appendValues(dst, p, m.Values)
}

// wants reports whether r names the page: page code 3Fh and subpage code FFh stand
// for all of them (SPC-4 clause 6.13).
func (r Request) wants(p *page) bool {
	return (r.page == p.code || r.page == AllPages) &&
		(r.subpage == p.subpage || r.subpage == AllSubpages) &&
		!(r.page == AllPages && r.subpage != 0 && r.subpage != AllSubpages)
}
