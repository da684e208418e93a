package pdu

import "fmt"

// Opcode says what a PDU is (RFC 7143 11.2.1.2); six bits.
type Opcode uint8

// Opcodes of PDUs from the initiator.
const (
	OpNOPOut                Opcode = 0x00
	OpSCSICommand           Opcode = 0x01
	OpTaskManagementRequest Opcode = 0x02
	OpLoginRequest          Opcode = 0x03
	OpTextRequest           Opcode = 0x04
	OpDataOut               Opcode = 0x05
	OpLogoutRequest         Opcode = 0x06
	OpSNACKRequest          Opcode = 0x10
)

// Opcodes of PDUs from the target.
const (
	OpNOPIn                  Opcode = 0x20
	OpSCSIResponse           Opcode = 0x21
	OpTaskManagementResponse Opcode = 0x22
	OpLoginResponse          Opcode = 0x23
	OpTextResponse           Opcode = 0x24
	OpDataIn                 Opcode = 0x25
	OpLogoutResponse         Opcode = 0x26
	OpR2T                    Opcode = 0x31
	OpAsyncMessage           Opcode = 0x32
	OpReject                 Opcode = 0x3f
)

var opcodeNames = [64]string{
	OpNOPOut:                 "NOP-Out",
	OpSCSICommand:            "SCSI Command",
	OpTaskManagementRequest:  "Task Management Function Request",
	OpLoginRequest:           "Login Request",
	OpTextRequest:            "Text Request",
	OpDataOut:                "SCSI Data-Out",
	OpLogoutRequest:          "Logout Request",
	OpSNACKRequest:           "SNACK Request",
	OpNOPIn:                  "NOP-In",
	OpSCSIResponse:           "SCSI Response",
	OpTaskManagementResponse: "Task Management Function Response",
	OpLoginResponse:          "Login Response",
	OpTextResponse:           "Text Response",
	OpDataIn:                 "SCSI Data-In",
	OpLogoutResponse:         "Logout Response",
	OpR2T:                    "Ready To Transfer",
	OpAsyncMessage:           "Asynchronous Message",
	OpReject:                 "Reject",
}

// Known reports that RFC 7143 defines the opcode.
func (op Opcode) Known() bool { return opcodeNames[op&0x3f] != "" }

// FromInitiator reports that the opcode belongs to the initiator's half of
// the number space.
func (op Opcode) FromInitiator() bool { return op&0x20 == 0 }

// String is the RFC's name of the PDU.
func (op Opcode) String() string {
	return nameOr(opcodeNames[op&0x3f], "opcode", uint8(op))
}

// nameOr is the name, or kind and number for a value that has none.
func nameOr(name, kind string, value uint8) string {
	if name != "" {
		return name
	}
	return fmt.Sprintf("%s 0x%02x", kind, value)
}

// nameAt is names[value], or kind and number when that is absent.
func nameAt(names []string, kind string, value uint8) string {
	if int(value) < len(names) {
		return nameOr(names[value], kind, value)
	}
	return nameOr("", kind, value)
}
