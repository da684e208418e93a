package pdu

import (
	"encoding/binary"
	"encoding/hex"
)

// LoginRequest is a step of the login phase from the initiator; always
// immediate (RFC 7143 11.12):
//
//	 0     I | 0x03
//	 1     T | C | . . | CSG | NSG
//	 2     Version-max
//	 3     Version-min
//	 8     ISID (6 bytes)
//	14     TSIH (2 bytes)
//	16     Initiator Task Tag
//	20     CID (2 bytes)
//	24     CmdSN
//	28     ExpStatSN
//	48     login parameters as text
type LoginRequest BHS

// BHS is the same header with the fields that PDUs share.
func (p *LoginRequest) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *LoginRequest) Init() *LoginRequest {
	*p = LoginRequest{0: byte(OpLoginRequest)}
	return p
}

// Transit is the T bit: the sender is ready to go to stage NSG.
func (p *LoginRequest) Transit() bool { return p[1]&0x80 != 0 }

// SetTransit sets the T bit.
func (p *LoginRequest) SetTransit(v bool) { setBit(&p[1], 0x80, v) }

// Continue is the C bit: the text goes on in the next PDU.
func (p *LoginRequest) Continue() bool { return p[1]&0x40 != 0 }

// SetContinue sets the C bit.
func (p *LoginRequest) SetContinue(v bool) { setBit(&p[1], 0x40, v) }

// CSG is the current stage.
func (p *LoginRequest) CSG() Stage { return Stage(p[1] >> 2 & 0x03) }

// SetCSG sets the current stage.
func (p *LoginRequest) SetCSG(v Stage) { p[1] = p[1]&^0xc | byte(v)&0x03<<2 }

// NSG is the next stage, which counts only with the T bit.
func (p *LoginRequest) NSG() Stage { return Stage(p[1] & 0x03) }

// SetNSG sets the next stage, which counts only with the T bit.
func (p *LoginRequest) SetNSG(v Stage) { p[1] = p[1]&^0x03 | byte(v)&0x03 }

// ISID is the initiator's part of the session identifier; six bytes.
func (p *LoginRequest) ISID() ISID { return ISID(p[8:14]) }

// SetISID sets the initiator's part of the session identifier.
func (p *LoginRequest) SetISID(v ISID) { copy(p[8:14], v[:]) }

// TSIH is the target's session handle, 0 for a session yet to be made.
func (p *LoginRequest) TSIH() uint16 { return binary.BigEndian.Uint16(p[14:16]) }

// SetTSIH sets the target's session handle, 0 for a session yet to be made.
func (p *LoginRequest) SetTSIH(v uint16) { binary.BigEndian.PutUint16(p[14:16], v) }

// VersionMax is the highest version that the initiator supports.
func (p *LoginRequest) VersionMax() uint8 { return p[2] }

// SetVersionMax sets the highest version that the initiator supports.
func (p *LoginRequest) SetVersionMax(v uint8) { p[2] = v }

// VersionMin is the lowest version that the initiator supports.
func (p *LoginRequest) VersionMin() uint8 { return p[3] }

// SetVersionMin sets the lowest version that the initiator supports.
func (p *LoginRequest) SetVersionMin(v uint8) { p[3] = v }

// CID is the connection identifier within the session.
func (p *LoginRequest) CID() uint16 { return binary.BigEndian.Uint16(p[20:22]) }

// SetCID sets the connection identifier within the session.
func (p *LoginRequest) SetCID(v uint16) { binary.BigEndian.PutUint16(p[20:22], v) }

// Version is the only protocol version that RFC 7143 defines.
const Version = 0x00

// ISID is the initiator's part of a session identifier (RFC 7143 11.12.5).
type ISID [6]byte

// String is the ISID in hexadecimal.
func (i ISID) String() string { return hex.EncodeToString(i[:]) }

// Stage is a stage of the login phase (RFC 7143 11.12.3).
type Stage uint8

// Login stages.
const (
	StageSecurityNegotiation         Stage = 0
	StageLoginOperationalNegotiation Stage = 1
	StageFullFeaturePhase            Stage = 3
)

var stageNames = []string{
	StageSecurityNegotiation:         "SecurityNegotiation",
	StageLoginOperationalNegotiation: "LoginOperationalNegotiation",
	StageFullFeaturePhase:            "FullFeaturePhase",
}

// String is the RFC's name of the value.
func (v Stage) String() string { return nameAt(stageNames, "stage", uint8(v)) }
