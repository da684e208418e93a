package reservation

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Fields of an iSCSI TransportID (SPC-4 clause 7.6.4.6):
//
//	0     FORMAT CODE (bits 7-6), PROTOCOL IDENTIFIER (bits 3-0)
//	1     reserved
//	2-3   ADDITIONAL LENGTH: of the rest, a multiple of 4, at least 20
//	4-    the name, UTF-8, ended and filled up with zeroes
const (
	protocolISCSI    = 0x05
	formatDevice     = 0x00 // iSCSI name
	formatPort       = 0x40 // iSCSI name, ",i,0x", ISID
	formatMask       = 0xc0
	transportHeader  = 4
	minTransportName = 20
	portSeparator    = ",i,0x"

	maxName = 223 // bytes of an iSCSI name (RFC 7143 section 4.2.7.1)
)

// AppendTransportID appends the TransportID of an initiator port.
func AppendTransportID(dst []byte, initiator string) []byte {
	n := max(len(initiator)/4*4+4, minTransportName) // at least one zero
	dst = append(dst, formatPort|protocolISCSI, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	dst = append(dst, initiator...)
	return append(dst, make([]byte, n-len(initiator))...)
}

// PortName returns the initiator port name of an iSCSI name and an ISID, in the
// form that a Nexus has.
func PortName(name string, isid uint64) string {
	return fmt.Sprintf("%s%s%012x", strings.ToLower(name), portSeparator, isid)
}

// transportID is a parsed one.
type transportID struct {
	name   string // of the port, or of the device
	device bool   // all ports of the device are meant
	length int    // in bytes
}

// parseTransportID reads the TransportID at the beginning of data; at is where
// that lies in the parameter list.
func parseTransportID(data []byte, at int) (transportID, *Refusal) {
	if len(data) < transportHeader {
		return transportID{}, &Refusal{Reason: ListLength}
	}
	if data[0]&^formatMask != protocolISCSI {
		return transportID{}, invalidList(at, 3)
	}
	n := int(binary.BigEndian.Uint16(data[2:]))
	if n < minTransportName || n%4 != 0 {
		return transportID{}, invalidList(at+2, -1)
	}
	if len(data) < transportHeader+n {
		return transportID{}, &Refusal{Reason: ListLength}
	}
	name, _, ended := bytes.Cut(data[transportHeader:transportHeader+n], []byte{0})
	id := transportID{name: string(name), device: data[0]&formatMask == formatDevice, length: transportHeader + n}
	ok := ended && len(name) > 0
	switch data[0] & formatMask {
	case formatDevice:
		id.name = strings.ToLower(id.name)
		ok = ok && !strings.Contains(id.name, ",") && len(id.name) <= maxName
	case formatPort:
		id.name, ok = normalPort(id.name)
	default:
		return transportID{}, invalidList(at, 7)
	}
	if !ok {
		return transportID{}, invalidList(at+transportHeader, -1)
	}
	return id, nil
}

// normalPort brings an initiator port name into the form of a Nexus.
func normalPort(port string) (string, bool) {
	name, digits, found := strings.Cut(strings.ToLower(port), portSeparator)
	isid, err := strconv.ParseUint(digits, 16, 48)
	return PortName(name, isid), found && name != "" && len(name) <= maxName && err == nil
}
