package scsi

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Fields of a designation descriptor (SPC-4 clause 7.8).
const (
	protocolISCSI = 0x5 << 4 // byte 0: PROTOCOL IDENTIFIER
	codeBinary    = 0x1      // byte 0: CODE SET
	codeASCII     = 0x2
	codeUTF8      = 0x3

	pivValid         = 0x80     // byte 1: PROTOCOL IDENTIFIER is valid
	associatedLU     = 0x0 << 4 // byte 1: ASSOCIATION
	associatedPort   = 0x1 << 4
	associatedDevice = 0x2 << 4

	designatorHeader = 4 // bytes, the last of which is the length of what follows

	designatorT10Vendor    = 0x1 // byte 1: DESIGNATOR TYPE
	designatorEUI64        = 0x2
	designatorNAA          = 0x3
	designatorRelativePort = 0x4
	designatorPortGroup    = 0x5
	designatorName         = 0x8
)

// deviceIdentification is page 83h: names of the logical unit, then, for a
// nexus that knows its target, of the target port and the target device.
func deviceIdentification(n *Nexus) []byte {
	body := slices.Clone(n.LU.config.Designators)
	if n.Target == "" {
		return body
	}
	return append(body, targetDesignators(n)...)
}

// unitDesignators are a T10 vendor identification, unique by the serial
// number, and an NAA identifier.
func (config *LUConfig) unitDesignators() []byte {
	vendor := make([]byte, 8+16)
	putASCII(vendor[:8], config.Vendor)
	putASCII(vendor[8:], config.Product)
	vendor = append(vendor, config.Serial...)
	return append(
		designator(codeASCII, associatedLU|designatorT10Vendor, vendor[:min(len(vendor), 252)]),
		designator(codeBinary, associatedLU|designatorNAA, config.NAA)...)
}

// targetDesignators follow RFC 7143 section 4.4.2: the target port is a portal
// group, its name the iSCSI name with ",t,0x" and the portal group tag; the
// target device's name is the iSCSI name.
func targetDesignators(n *Nexus) []byte {
	const port = pivValid | associatedPort
	portName := fmt.Sprintf("%s,t,0x%04x", n.Target, n.TargetTag)
	relative := binary.BigEndian.AppendUint16([]byte{0, 0}, n.TargetTag)
	list := designator(protocolISCSI|codeBinary, port|designatorRelativePort, relative)
	list = append(list, designator(protocolISCSI|codeBinary, port|designatorPortGroup, relative)...)
	list = append(list, designator(protocolISCSI|codeUTF8, port|designatorName, nameString(portName))...)
	return append(list, deviceName(n.Target)...)
}

// deviceName is the designator of a target device.
func deviceName(target string) []byte {
	return designator(protocolISCSI|codeUTF8, pivValid|associatedDevice|designatorName, nameString(target))
}

// creatorDesignator is one that a ROD token names its logical unit by: the best of
// those of fixed length, which fit there.
func (config *LUConfig) creatorDesignator() []byte {
	for _, kind := range []byte{designatorNAA, designatorEUI64} {
		for all := config.Designators; len(all) >= designatorHeader; {
			one := all[:designatorHeader+int(all[3])]
			if one[1]&0x0f == kind {
				return one
			}
			all = all[len(one):]
		}
	}
	return designator(codeBinary, associatedLU|designatorNAA, config.NAA)
}

func designator(set, kind byte, identifier []byte) []byte {
	return append([]byte{set, kind, 0, byte(len(identifier))}, identifier...)
}

// nameString ends name with one to four NULs, up to a multiple of four bytes
// (SPC-4 clause 7.8).
func nameString(name string) []byte {
	return append([]byte(name), make([]byte, 4-len(name)%4)...)
}
