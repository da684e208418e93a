package pdu

import "encoding/binary"

// LogoutRequest is a request to close a session or a connection (RFC 7143 11.14):
//
//	 0     I | 0x06
//	 1     1 | Reason Code (7 bits)
//	16     Initiator Task Tag
//	20     CID (2 bytes), unless the session is to be closed
//	24     CmdSN
//	28     ExpStatSN
type LogoutRequest BHS

// BHS is the same header with the fields that PDUs share.
func (p *LogoutRequest) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *LogoutRequest) Init() *LogoutRequest {
	*p = LogoutRequest{0: byte(OpLogoutRequest), 1: 0x80}
	return p
}

// Reason is what is to be closed, and why.
func (p *LogoutRequest) Reason() LogoutReason { return LogoutReason(p[1] & 0x7f) }

// SetReason sets what is to be closed, and why.
func (p *LogoutRequest) SetReason(v LogoutReason) { p[1] = p[1]&^0x7f | byte(v)&0x7f }

// CID is the connection to close.
func (p *LogoutRequest) CID() uint16 { return binary.BigEndian.Uint16(p[20:22]) }

// SetCID sets the connection to close.
func (p *LogoutRequest) SetCID(v uint16) { binary.BigEndian.PutUint16(p[20:22], v) }

// LogoutReason is what a logout is to close (RFC 7143 11.14.1).
type LogoutReason uint8

// Reasons of a logout.
const (
	LogoutCloseSession      LogoutReason = 0
	LogoutCloseConnection   LogoutReason = 1
	LogoutRemoveForRecovery LogoutReason = 2
)
