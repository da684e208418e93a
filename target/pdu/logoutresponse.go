package pdu

import "encoding/binary"

// LogoutResponse is the answer to a logout request (RFC 7143 11.15):
//
//	 0     0x26
//	 1     F = 1
//	 2     Response
//	16     Initiator Task Tag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	40     Time2Wait (2 bytes)
//	42     Time2Retain (2 bytes)
type LogoutResponse BHS

// BHS is the same header with the fields that PDUs share.
func (p *LogoutResponse) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *LogoutResponse) Init() *LogoutResponse {
	*p = LogoutResponse{0: byte(OpLogoutResponse), 1: 0x80}
	return p
}

// Response is the outcome of the logout.
func (p *LogoutResponse) Response() LogoutResponseCode { return LogoutResponseCode(p[2]) }

// SetResponse sets the outcome of the logout.
func (p *LogoutResponse) SetResponse(v LogoutResponseCode) { p[2] = byte(v) }

// Time2Wait is the least time in seconds before a reconnection.
func (p *LogoutResponse) Time2Wait() uint16 { return binary.BigEndian.Uint16(p[40:42]) }

// SetTime2Wait sets the least time in seconds before a reconnection.
func (p *LogoutResponse) SetTime2Wait(v uint16) { binary.BigEndian.PutUint16(p[40:42], v) }

// Time2Retain is the greatest time in seconds, after Time2Wait, in which
// tasks can be reassigned.
func (p *LogoutResponse) Time2Retain() uint16 { return binary.BigEndian.Uint16(p[42:44]) }

// SetTime2Retain sets the greatest time in seconds, after Time2Wait, in which
// tasks can be reassigned.
func (p *LogoutResponse) SetTime2Retain(v uint16) { binary.BigEndian.PutUint16(p[42:44], v) }

// LogoutResponseCode is the outcome of a logout (RFC 7143 11.15.1).
type LogoutResponseCode uint8

// Outcomes of a logout.
const (
	LogoutSuccess              LogoutResponseCode = 0
	LogoutCIDNotFound          LogoutResponseCode = 1
	LogoutRecoveryNotSupported LogoutResponseCode = 2
	LogoutCleanupFailed        LogoutResponseCode = 3
)
