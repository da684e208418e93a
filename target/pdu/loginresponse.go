package pdu

import "encoding/binary"

// LoginResponse is a step of the login phase from the target (RFC 7143 11.13):
//
//	 0     0x23
//	 1     T | C | . . | CSG | NSG
//	 2     Version-max
//	 3     Version-active
//	 8     ISID (6 bytes)
//	14     TSIH (2 bytes)
//	16     Initiator Task Tag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	36     Status-Class
//	37     Status-Detail
//	48     login parameters as text
type LoginResponse BHS

// BHS is the same header with the fields that PDUs share.
func (p *LoginResponse) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *LoginResponse) Init() *LoginResponse {
	*p = LoginResponse{0: byte(OpLoginResponse)}
	return p
}

// Transit is the T bit: the sender is ready to go to stage NSG.
func (p *LoginResponse) Transit() bool { return p[1]&0x80 != 0 }

// SetTransit sets the T bit.
func (p *LoginResponse) SetTransit(v bool) { setBit(&p[1], 0x80, v) }

// Continue is the C bit: the text goes on in the next PDU.
func (p *LoginResponse) Continue() bool { return p[1]&0x40 != 0 }

// SetContinue sets the C bit.
func (p *LoginResponse) SetContinue(v bool) { setBit(&p[1], 0x40, v) }

// CSG is the current stage.
func (p *LoginResponse) CSG() Stage { return Stage(p[1] >> 2 & 0x03) }

// SetCSG sets the current stage.
func (p *LoginResponse) SetCSG(v Stage) { p[1] = p[1]&^0xc | byte(v)&0x03<<2 }

// NSG is the next stage, which counts only with the T bit.
func (p *LoginResponse) NSG() Stage { return Stage(p[1] & 0x03) }

// SetNSG sets the next stage, which counts only with the T bit.
func (p *LoginResponse) SetNSG(v Stage) { p[1] = p[1]&^0x03 | byte(v)&0x03 }

// ISID is the initiator's part of the session identifier; six bytes.
func (p *LoginResponse) ISID() ISID { return ISID(p[8:14]) }

// SetISID sets the initiator's part of the session identifier.
func (p *LoginResponse) SetISID(v ISID) { copy(p[8:14], v[:]) }

// TSIH is the target's session handle, 0 for a session yet to be made.
func (p *LoginResponse) TSIH() uint16 { return binary.BigEndian.Uint16(p[14:16]) }

// SetTSIH sets the target's session handle, 0 for a session yet to be made.
func (p *LoginResponse) SetTSIH(v uint16) { binary.BigEndian.PutUint16(p[14:16], v) }

// VersionMax is the highest version that the target supports.
func (p *LoginResponse) VersionMax() uint8 { return p[2] }

// SetVersionMax sets the highest version that the target supports.
func (p *LoginResponse) SetVersionMax(v uint8) { p[2] = v }

// VersionActive is the version in use.
func (p *LoginResponse) VersionActive() uint8 { return p[3] }

// SetVersionActive sets the version in use.
func (p *LoginResponse) SetVersionActive(v uint8) { p[3] = v }

// Status is Status-Class and Status-Detail.
func (p *LoginResponse) Status() LoginStatus {
	return LoginStatus(binary.BigEndian.Uint16(p[36:38]))
}

// SetStatus sets Status-Class and Status-Detail.
func (p *LoginResponse) SetStatus(v LoginStatus) {
	binary.BigEndian.PutUint16(p[36:38], uint16(v))
}
