package scsi

import (
	"encoding/binary"

	"lunar/backstore/protect"
	"lunar/target/scsi/sense"
)

// Peripheral qualifier and device type (SPC-4 clause 6.6), byte 0 of all
// INQUIRY data.
const (
	directAccessDevice = 0x00 // connected, direct access block device
	noDevice           = 0x7f // no logical unit has this LUN (qualifier 011b, type 1Fh)
)

// Fields of the standard INQUIRY data (SPC-4 clause 6.6).
const (
	versionSPC4       = 0x06
	inquiryRMB        = 0x80 // byte 1: the medium can be removed
	inquiryNormACA    = 0x20 // byte 3: NACA may be set
	inquiryHiSup      = 0x10 // byte 3: LUNs follow SAM-5's addressing model
	inquiryFormat     = 0x02 // byte 3: RESPONSE DATA FORMAT
	inquiry3PC        = 0x08 // byte 5: third-party copy commands
	inquiryImplicit   = 0x10 // byte 5: TPGS, target port groups change by themselves
	inquiryExplicit   = 0x20 // byte 5: TPGS, and by SET TARGET PORT GROUPS
	inquiryCmdQue     = 0x02 // byte 7: full task management model
	inquiryDataLength = 96
)

// versionDescriptors are the standards that the unit claims (SPC-4 annex D).
var versionDescriptors = []uint16{
	0x00a0, // SAM-5
	0x0460, // SPC-4
	0x04c0, // SBC-3
	0x0960, // iSCSI
}

// standardInquiry returns the standard INQUIRY data. PROTECT is zero: there is
// no protection information.
func standardInquiry(peripheral byte, config *LUConfig) []byte {
	data := make([]byte, inquiryDataLength)
	data[0] = peripheral
	if config.Removable {
		data[1] = inquiryRMB
	}
	data[2] = versionSPC4
	data[3] = inquiryHiSup | inquiryFormat
	data[4] = inquiryDataLength - 5 // ADDITIONAL LENGTH
	data[5] = inquiryImplicit | inquiry3PC
	data[7] = inquiryCmdQue
	putASCII(data[8:16], config.Vendor)
	putASCII(data[16:32], config.Product)
	putASCII(data[32:36], config.Revision)
	for i, version := range versionDescriptors {
		binary.BigEndian.PutUint16(data[58+2*i:], version)
	}
	return data
}

// putASCII fills field with s, cut or padded with spaces on the right, and
// spaces for what is not printable ASCII (SPC-4 clause 4.4.1).
func putASCII(field []byte, s string) {
	for i := range field {
		field[i] = ' '
		if i < len(s) && s[i] >= ' ' && s[i] <= '~' {
			field[i] = s[i]
		}
	}
}

// absentLU gives INQUIRY its texts for a LUN without a logical unit.
var absentLU LUConfig

func init() { absentLU.setDefaults() }

// inquiryData answers INQUIRY for nexus n, whose LU is nil if nothing is
// mapped there.
func inquiryData(n *Nexus, cdb *CDB) ([]byte, *sense.Data) {
	evpd, page := cdb[1]&0x01 != 0, cdb[2]
	switch {
	case !evpd && page != 0:
		return nil, sense.InvalidFieldInCDB(2, 7)
	case n.LU == nil:
		if evpd {
			return nil, sense.InvalidFieldInCDB(1, 0)
		}
		return standardInquiry(noDevice, &absentLU), nil
	case evpd:
		return vpdData(n, page)
	}
	data := standardInquiry(directAccessDevice, &n.LU.config)
	if n.LU.traits.Load().explicit {
		data[5] |= inquiryExplicit
	}
	if n.normalACA() {
		data[3] |= inquiryNormACA
	}
	if n.LU.protect != protect.None {
		data[5] |= inquiryProtect
	}
	return data, nil
}

func runInquiry(c *Command) {
	data, sense := inquiryData(c.Nexus, &c.CDB)
	c.answer(data, uint32(binary.BigEndian.Uint16(c.CDB[3:])), sense)
}
