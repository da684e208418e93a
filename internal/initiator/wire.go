package initiator

import "encoding/binary"

// Opcodes of RFC 7143 section 11.2.1.2, initiator side and target side.
const (
	OpNOPOut       = 0x00
	OpSCSICommand  = 0x01
	OpTaskRequest  = 0x02
	OpLoginRequest = 0x03
	OpTextRequest  = 0x04
	OpDataOut      = 0x05
	OpLogout       = 0x06
	OpSNACK        = 0x10

	OpNOPIn          = 0x20
	OpSCSIResponse   = 0x21
	OpTaskResponse   = 0x22
	OpLoginResponse  = 0x23
	OpTextResponse   = 0x24
	OpDataIn         = 0x25
	OpLogoutResponse = 0x26
	OpR2T            = 0x31
	OpAsync          = 0x32
	OpReject         = 0x3f
)

// Bits of byte 0 and byte 1.
const (
	opcodeMask   = 0x3f
	bitImmediate = 0x40 // byte 0 of a request: outside the command window

	FlagFinal     = 0x80 // F, or T (transit) in login PDUs
	FlagContinue  = 0x40 // C of text and login PDUs
	FlagAck       = 0x40 // A of Data-In
	FlagRead      = 0x40 // R of SCSI Command
	FlagWrite     = 0x20 // W of SCSI Command
	FlagBidiOver  = 0x10 // o of SCSI Response
	FlagBidiUnder = 0x08 // u of SCSI Response
	FlagOverflow  = 0x04 // O of SCSI Response and Data-In
	FlagUnderflow = 0x02 // U of SCSI Response and Data-In
	FlagStatus    = 0x01 // S of Data-In
)

// NoTag is the reserved value of an ITT or TTT.
const NoTag = 0xffffffff

// headerLength is the size of a basic header segment.
const headerLength = 48

// PDU is one PDU without its padding and digests, which Send adds and Receive
// checks and removes. BHS is a plain array, so that any other header type of
// that shape can be assigned to it.
type PDU struct {
	BHS  [headerLength]byte
	AHS  []byte
	Data []byte

	// How Send departs from the RFC. KeepLengths leaves TotalAHSLength and
	// DataSegmentLength as they stand in BHS; the two others send a digest
	// with one bit flipped (when that digest is negotiated).
	KeepLengths     bool
	BadHeaderDigest bool
	BadDataDigest   bool
}

// NewPDU returns a PDU with an opcode, the flags of byte 1 and a data segment,
// which it refers to without copying.
func NewPDU(opcode, flags byte, data []byte) *PDU {
	p := &PDU{Data: data}
	p.BHS[0], p.BHS[1] = opcode, flags
	return p
}

// Opcode returns the low six bits of byte 0.
func (p *PDU) Opcode() byte { return p.BHS[0] & opcodeMask }

// SetImmediate sets the I bit of a request.
func (p *PDU) SetImmediate() { p.BHS[0] |= bitImmediate }

// Flags returns byte 1.
func (p *PDU) Flags() byte { return p.BHS[1] }

// Has reports whether all bits of mask are set in byte 1.
func (p *PDU) Has(mask byte) bool { return p.BHS[1]&mask == mask }

// U32 returns the big-endian word at byte offset at of the BHS.
func (p *PDU) U32(at int) uint32 { return binary.BigEndian.Uint32(p.BHS[at:]) }

// SetU32 stores a big-endian word at byte offset at of the BHS.
func (p *PDU) SetU32(at int, v uint32) { binary.BigEndian.PutUint32(p.BHS[at:], v) }

// Byte offsets of the words that most PDUs share; each is read with U32.
// The words at 36, 40 and 44 change their meaning with the opcode.
const (
	AtLUN       = 8
	AtITT       = 16
	AtTTT       = 20 // also EDTL of a SCSI Command, referenced tag of a task request
	AtCmdSN     = 24
	AtStatSN    = 24
	AtExpStatSN = 28
	AtExpCmdSN  = 28
	AtMaxCmdSN  = 32
	AtDataSN    = 36 // also R2TSN, ExpDataSN
	AtOffset    = 40
	AtLength    = 44 // desired length of R2T
	AtResidual  = 44
	AtCDB       = 32
)

// ITT returns the initiator task tag.
func (p *PDU) ITT() uint32 { return p.U32(AtITT) }

// TTT returns the target transfer tag.
func (p *PDU) TTT() uint32 { return p.U32(AtTTT) }

// StatSN returns the status sequence number of a target PDU.
func (p *PDU) StatSN() uint32 { return p.U32(AtStatSN) }

// dataLength returns DataSegmentLength in bytes.
func (p *PDU) dataLength() int {
	return int(p.BHS[5])<<16 | int(p.BHS[6])<<8 | int(p.BHS[7])
}

// ahsLength returns TotalAHSLength in bytes (the field counts words).
func (p *PDU) ahsLength() int { return int(p.BHS[4]) * 4 }

func (p *PDU) setLengths() {
	n := len(p.Data)
	p.BHS[4] = byte((len(p.AHS) + 3) / 4)
	p.BHS[5], p.BHS[6], p.BHS[7] = byte(n>>16), byte(n>>8), byte(n)
}

// mostLUN is the largest number that LUN has a form for.
const mostLUN = 1<<14 - 1

// LUN returns the 8-byte form of a LUN number: peripheral device addressing up
// to 255, flat space addressing up to 16383 (SAM-5 4.7).
func LUN(number uint64) [8]byte {
	lun := [8]byte{1: byte(number)}
	if number > 0xff {
		lun[0] = 0x40 | byte(number>>8)&0x3f
	}
	return lun
}

// SetLUN stores a LUN number in bytes 8 to 15.
func (p *PDU) SetLUN(number uint64) {
	lun := LUN(number)
	copy(p.BHS[AtLUN:], lun[:])
}

// before reports a < b in serial number arithmetic (RFC 1982, 32 bits).
func before(a, b uint32) bool { return int32(a-b) < 0 }

// padding returns how many bytes follow n bytes to reach a word boundary.
func padding(n int) int { return -n & 3 }
