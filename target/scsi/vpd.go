package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/target/scsi/mode"
	"lunar/target/scsi/sense"
)

// VPD page codes (SPC-4 clause 7.8, SBC-3 clause 6.6).
const (
	vpdSupportedPages       = 0x00
	vpdUnitSerialNumber     = 0x80
	vpdDeviceIdentification = 0x83
	vpdExtendedInquiry      = 0x86
	vpdModePagePolicy       = 0x87
	vpdThirdPartyCopy       = 0x8f
	vpdBlockLimits          = 0xb0
	vpdBlockCharacteristics = 0xb1
	vpdBlockProvisioning    = 0xb2
)

// PAGE LENGTH of the pages that are that long by definition, in bytes.
const (
	extendedInquirySize      = 60
	blockLimitsSize          = 60
	blockCharacteristicsSize = 60
	blockProvisioningSize    = 4
)

// vpdPages are the vital product data pages besides 00h, in ascending order.
// Body returns a page without its four byte header.
var vpdPages = []struct {
	Code byte
	Body func(*Nexus) []byte
}{
	{vpdUnitSerialNumber, unitSerialNumber},
	{vpdDeviceIdentification, deviceIdentification},
	{vpdExtendedInquiry, extendedInquiry},
	{vpdModePagePolicy, modePagePolicy},
	{vpdThirdPartyCopy, thirdPartyCopy},
	{vpdBlockLimits, func(n *Nexus) []byte { return blockLimitsPage(&n.LU.traits.Load().limits) }},
	{vpdBlockCharacteristics, func(n *Nexus) []byte { return blockCharacteristics(n.LU.traits.Load().info) }},
	{vpdBlockProvisioning, func(n *Nexus) []byte { return blockProvisioning(n.LU) }},
}

// vpdData returns the VPD page with this code, complete with its header.
func vpdData(n *Nexus, code byte) ([]byte, *sense.Data) {
	if code == vpdSupportedPages {
		return vpdPage(code, supportedPages()), nil
	}
	for _, page := range vpdPages {
		if page.Code == code {
			return vpdPage(code, page.Body(n)), nil
		}
	}
	return nil, sense.InvalidFieldInCDB(2, 7)
}

// vpdPage puts the common header in front of body.
func vpdPage(code byte, body []byte) []byte {
	page := []byte{directAccessDevice, code, 0, 0}
	binary.BigEndian.PutUint16(page[2:], uint16(len(body)))
	return append(page, body...)
}

// supportedPages is page 00h: all page codes, itself first.
func supportedPages() []byte {
	codes := []byte{vpdSupportedPages}
	for _, page := range vpdPages {
		codes = append(codes, page.Code)
	}
	return codes
}

// unitSerialNumber is page 80h (SPC-4 clause 7.8).
func unitSerialNumber(n *Nexus) []byte { return []byte(n.LU.config.Serial) }

// extendedInquiry is page 86h (SPC-4 clause 7.8): the task attributes
// HEAD OF QUEUE, ORDERED and SIMPLE, and whether GROUP NUMBER has a meaning and whether
// there is a volatile cache.
func extendedInquiry(n *Nexus) []byte {
	body := make([]byte, extendedInquirySize)
	if n.LU.protect != protect.None {
		body[0] = typeCodes[n.LU.protect].extended | tagChecks
	}
	body[1] = 0x04 | 0x02 | 0x01 // HEADSUP, ORDSUP, SIMPSUP
	traits := n.LU.traits.Load()
	if traits.groups {
		body[1] |= 0x10 // GROUP_SUP
	}
	if traits.info.VolatileCache {
		body[2] = 0x01 // V_SUP
	}
	return body
}

// modePagePolicy is page 87h (SPC-4 clause 7.8): one descriptor, which says
// of all mode pages and subpages that all initiators share them.
func modePagePolicy(*Nexus) []byte { return []byte{mode.AllPages, mode.AllSubpages, 0x00, 0} }

// blockLimitsPage is page B0h (SBC-3 clause 6.6). Unmapped ranges align with
// LBA 0.
func blockLimitsPage(l *BlockLimits) []byte {
	body := make([]byte, blockLimitsSize)
	if l.WriteSameNonZero {
		body[0] = 0x01 // WSNZ
	}
	body[1] = l.MaxCompareAndWrite
	binary.BigEndian.PutUint16(body[2:], l.OptimalGranularity)
	binary.BigEndian.PutUint32(body[4:], l.MaxTransfer)
	binary.BigEndian.PutUint32(body[8:], l.OptimalTransfer)
	binary.BigEndian.PutUint32(body[12:], l.MaxPrefetch)
	binary.BigEndian.PutUint32(body[16:], l.MaxUnmap)
	binary.BigEndian.PutUint32(body[20:], l.MaxUnmapDescriptors)
	binary.BigEndian.PutUint32(body[24:], l.UnmapGranularity)
	if l.UnmapGranularity != 0 {
		body[28] = 0x80 // UGAVALID
	}
	binary.BigEndian.PutUint64(body[32:], l.MaxWriteSame)
	binary.BigEndian.PutUint32(body[40:], l.MaxAtomic)
	if l.AtomicUnit > 1 {
		binary.BigEndian.PutUint32(body[44:], l.AtomicUnit) // ATOMIC ALIGNMENT
		binary.BigEndian.PutUint32(body[48:], l.AtomicUnit) // ATOMIC TRANSFER LENGTH GRANULARITY
	}
	binary.BigEndian.PutUint32(body[52:], l.MaxAtomic) // MAXIMUM ATOMIC TRANSFER LENGTH WITH ATOMIC BOUNDARY
	binary.BigEndian.PutUint32(body[56:], l.MaxAtomic) // MAXIMUM ATOMIC BOUNDARY SIZE
	return body
}

// blockCharacteristics is page B1h (SBC-3 clause 6.6). MEDIUM ROTATION RATE
// is 1, non-rotating, or 0, not reported.
func blockCharacteristics(info backstore.Info) []byte {
	body := make([]byte, blockCharacteristicsSize)
	if !info.Rotational {
		binary.BigEndian.PutUint16(body, 0x0001)
	}
	if info.Discard && info.DiscardZeroes {
		body[3] = 0x01 << 6 // WABEREQ: after a block erase everything reads as zeroes
	}
	if info.CryptoErase {
		body[3] |= 0x01 << 4 // WACEREQ: after a cryptographic erase reads succeed
	}
	return body
}

// Logical block provisioning page (SBC-3 clause 6.6).
const (
	lbpUnmap        = 0x80 // LBPU: UNMAP
	lbpWriteSame16  = 0x40 // LBPWS: WRITE SAME(16) with UNMAP
	lbpWriteSame10  = 0x20 // LBPWS10: WRITE SAME(10) with UNMAP
	lbpReadsZeroes  = 0x04 // LBPRZ: unmapped blocks read as zeroes
	provisionedThin = 0x02 // PROVISIONING TYPE
)

// blockProvisioning is page B2h: what can be unmapped by which command.
func blockProvisioning(lu *LogicalUnit) []byte {
	info := lu.traits.Load().info
	body := make([]byte, blockProvisioningSize)
	if !info.Discard {
		return body
	}
	body[1] = lbpUnmap | lbpWriteSame16 | lbpWriteSame10
	if info.DiscardZeroes {
		body[1] |= lbpReadsZeroes
	}
	body[0] = lu.thresholdExponent()
	if info.Thin {
		body[2] = provisionedThin
	}
	return body
}
