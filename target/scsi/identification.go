package scsi

import (
	"encoding/binary"
	"fmt"
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

	designatorT10Vendor    = 0x1 // byte 1: DESIGNATOR TYPE
	designatorNAA          = 0x3
	designatorRelativePort = 0x4
	designatorPortGroup    = 0x5
	designatorName         = 0x8
)

// deviceIdentification is page 83h: names of the logical unit, then, for a
// nexus that knows its target, of the target port and the target device.
func deviceIdentification(n *Nexus) []byte {
	body := unitDesignators(&n.LU.config)
	if n.Target == "" {
		return body
	}
	return append(body, targetDesignators(n)...)
}

// unitDesignators are a T10 vendor identification, unique by the serial
// number, and an NAA locally assigned identifier.
func unitDesignators(config *LUConfig) []byte {
	vendor := make([]byte, 8+16)
	putASCII(vendor[:8], config.Vendor)
	putASCII(vendor[8:], config.Product)
	vendor = append(vendor, config.Serial...)
	naa := binary.BigEndian.AppendUint64(nil, config.NAA)
	return append(
		designator(codeASCII, associatedLU|designatorT10Vendor, vendor[:min(len(vendor), 252)]),
		designator(codeBinary, associatedLU|designatorNAA, naa)...)
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

func designator(set, kind byte, identifier []byte) []byte {
	return append([]byte{set, kind, 0, byte(len(identifier))}, identifier...)
}

// nameString ends name with one to four NULs, up to a multiple of four bytes
// (SPC-4 clause 7.8).
func nameString(name string) []byte {
	return append([]byte(name), make([]byte, 4-len(name)%4)...)
}
