package pdu

import "encoding/binary"

// AsyncMessage is news from the target that answers no request (RFC 7143 11.9):
//
//	 0     0x32
//	 1     F = 1
//	 8     LUN
//	16     ReservedTag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     AsyncEvent
//	37     AsyncVCode
//	38     Parameter1 (2 bytes)
//	40     Parameter2 (2 bytes)
//	42     Parameter3 (2 bytes)
//	48     sense data, for a SCSI event
type AsyncMessage BHS

// BHS is the same header with the fields that PDUs share.
func (p *AsyncMessage) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode, the F bit and the reserved ITT.
func (p *AsyncMessage) Init() *AsyncMessage {
	*p = AsyncMessage{0: byte(OpAsyncMessage), 1: 0x80}
	p.BHS().SetITT(ReservedTag)
	return p
}

// Event is what happened.
func (p *AsyncMessage) Event() AsyncEvent { return AsyncEvent(p[36]) }

// SetEvent sets what happened.
func (p *AsyncMessage) SetEvent(v AsyncEvent) { p[36] = byte(v) }

// VCode is the vendor's code, for AsyncVendor alone.
func (p *AsyncMessage) VCode() uint8 { return p[37] }

// SetVCode sets the vendor's code, for AsyncVendor alone.
func (p *AsyncMessage) SetVCode(v uint8) { p[37] = v }

// Parameter1 is the first parameter: the CID of a connection to be dropped.
func (p *AsyncMessage) Parameter1() uint16 { return binary.BigEndian.Uint16(p[38:40]) }

// SetParameter1 sets the first parameter: the CID of a connection to be dropped.
func (p *AsyncMessage) SetParameter1(v uint16) { binary.BigEndian.PutUint16(p[38:40], v) }

// Parameter2 is the second parameter: Time2Wait in seconds.
func (p *AsyncMessage) Parameter2() uint16 { return binary.BigEndian.Uint16(p[40:42]) }

// SetParameter2 sets the second parameter: Time2Wait in seconds.
func (p *AsyncMessage) SetParameter2(v uint16) { binary.BigEndian.PutUint16(p[40:42], v) }

// Parameter3 is the third parameter: Time2Retain or the time to log out, in
// seconds.
func (p *AsyncMessage) Parameter3() uint16 { return binary.BigEndian.Uint16(p[42:44]) }

// SetParameter3 sets the third parameter: Time2Retain or the time to log out,
// in seconds.
func (p *AsyncMessage) SetParameter3(v uint16) { binary.BigEndian.PutUint16(p[42:44], v) }

// AsyncEvent is what an asynchronous message tells (RFC 7143 11.9.1).
type AsyncEvent uint8

// Asynchronous events.
const (
	AsyncSCSIEvent       AsyncEvent = 0
	AsyncLogoutRequest   AsyncEvent = 1
	AsyncDropConnection  AsyncEvent = 2
	AsyncDropSession     AsyncEvent = 3
	AsyncNegotiation     AsyncEvent = 4
	AsyncTaskTermination AsyncEvent = 5
	AsyncVendor          AsyncEvent = 255
)

var asyncEventNames = []string{
	AsyncSCSIEvent:       "SCSI asynchronous event",
	AsyncLogoutRequest:   "target requests logout",
	AsyncDropConnection:  "target will drop the connection",
	AsyncDropSession:     "target will drop the session",
	AsyncNegotiation:     "target requests negotiation",
	AsyncTaskTermination: "all active tasks are being terminated",
	AsyncVendor:          "vendor-specific event",
}

// String is the RFC's name of the event.
func (v AsyncEvent) String() string { return nameAt(asyncEventNames, "event", uint8(v)) }
