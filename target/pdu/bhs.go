package pdu

import "encoding/binary"

const (
	// BHSLength is the length of a Basic Header Segment in bytes (RFC 7143 11.2.1).
	BHSLength = 48
	// MaxAHSLength is the greatest TotalAHSLength in bytes: 255 four-byte words.
	MaxAHSLength = 255 * 4
	// MaxDataSegmentLength is the greatest value, in bytes, that the 24-bit
	// DataSegmentLength field holds.
	MaxDataSegmentLength = 1<<24 - 1
	// ReservedTag is the tag value 0xffffffff that names no task: an ITT or
	// TTT that carries it is absent (RFC 7143 11.2.1.8).
	ReservedTag = 0xffffffff
)

// BHS is a Basic Header Segment (RFC 7143 11.2.1) in wire order:
//
//	 0     . | I | opcode (6 bits)
//	 1     F | opcode-specific
//	 2-3   opcode-specific
//	 4     TotalAHSLength, in four-byte words
//	 5-7   DataSegmentLength, in bytes, without padding
//	 8-15  LUN or opcode-specific
//	16-19  Initiator Task Tag
//	20-47  opcode-specific; by convention
//	20-23  Target Transfer Tag
//	24-27  CmdSN (from the initiator) or StatSN (from the target)
//	28-31  ExpStatSN (from the initiator) or ExpCmdSN (from the target)
//	32-35  MaxCmdSN (from the target)
//
// An accessor of a field that the PDU lacks returns the bytes at its place.
type BHS [BHSLength]byte

// Opcode is the operation code, without the I bit.
func (b *BHS) Opcode() Opcode { return Opcode(b[0] & 0x3f) }

// Request is what a request is dispatched by: its operation code, the I bit and its CmdSN.
func (b *BHS) Request() (op Opcode, immediate bool, sn SN) {
	return b.Opcode(), b.Immediate(), b.CmdSN()
}

// SetOpcode sets the operation code and keeps the I bit.
func (b *BHS) SetOpcode(op Opcode) { b[0] = b[0]&^0x3f | byte(op)&0x3f }

// Immediate is the I bit: the request is delivered outside the CmdSN order.
func (b *BHS) Immediate() bool { return b[0]&0x40 != 0 }

// SetImmediate sets the I bit.
func (b *BHS) SetImmediate(v bool) { setBit(&b[0], 0x40, v) }

// Final is the F bit: the PDU is the last, or only, one of its sequence.
func (b *BHS) Final() bool { return b[1]&0x80 != 0 }

// SetFinal sets the F bit.
func (b *BHS) SetFinal(v bool) { setBit(&b[1], 0x80, v) }

// TotalAHSLength is the length in bytes of all additional header segments
// with their padding; always a multiple of 4.
func (b *BHS) TotalAHSLength() int { return int(b[4]) * 4 }

// SetTotalAHSLength sets the length of the additional header segments in
// bytes; n must be a multiple of 4 and at most MaxAHSLength.
func (b *BHS) SetTotalAHSLength(n int) { b[4] = byte(n / 4) }

// DataSegmentLength is the payload length in bytes, without padding.
func (b *BHS) DataSegmentLength() int {
	return int(b[5])<<16 | int(b[6])<<8 | int(b[7])
}

// SetDataSegmentLength sets the payload length in bytes, without padding; n
// must be at most MaxDataSegmentLength.
func (b *BHS) SetDataSegmentLength(n int) {
	b[5], b[6], b[7] = byte(n>>16), byte(n>>8), byte(n)
}

// WireLength is the length in bytes of the whole PDU that this header starts:
// header, additional headers, padded data segment and the digests in use.
func (b *BHS) WireLength(headerDigest, dataDigest bool) int {
	_, _, whole := b.Lengths(headerDigest, dataDigest)
	return whole
}

// Lengths are TotalAHSLength, DataSegmentLength and WireLength. A PDU without a data
// segment has no data digest (RFC 7143 11.2.3).
func (b *BHS) Lengths(headerDigest, dataDigest bool) (ahs, data, whole int) {
	ahs, data = b.TotalAHSLength(), b.DataSegmentLength()
	whole = BHSLength + ahs + data + Padding(data)
	if headerDigest {
		whole += DigestLength
	}
	if dataDigest && data > 0 {
		whole += DigestLength
	}
	return ahs, data, whole
}

// LUN is the eight-byte logical unit number, big endian, in SAM-5 form.
func (b *BHS) LUN() uint64 { return binary.BigEndian.Uint64(b[8:16]) }

// SetLUN sets the logical unit number.
func (b *BHS) SetLUN(lun uint64) { binary.BigEndian.PutUint64(b[8:16], lun) }

// ITT is the Initiator Task Tag, ReservedTag when the PDU answers no task.
func (b *BHS) ITT() uint32 { return binary.BigEndian.Uint32(b[16:20]) }

// SetITT sets the Initiator Task Tag.
func (b *BHS) SetITT(tag uint32) { binary.BigEndian.PutUint32(b[16:20], tag) }

// TTT is the Target Transfer Tag of the PDUs that have one.
func (b *BHS) TTT() uint32 { return binary.BigEndian.Uint32(b[20:24]) }

// SetTTT sets the Target Transfer Tag.
func (b *BHS) SetTTT(tag uint32) { binary.BigEndian.PutUint32(b[20:24], tag) }

// CmdSN is the command sequence number of a request.
func (b *BHS) CmdSN() SN { return SN(binary.BigEndian.Uint32(b[24:28])) }

// SetCmdSN sets the command sequence number of a request.
func (b *BHS) SetCmdSN(sn SN) { binary.BigEndian.PutUint32(b[24:28], uint32(sn)) }

// ExpStatSN is, in a PDU from the initiator, the next StatSN it expects.
func (b *BHS) ExpStatSN() SN { return SN(binary.BigEndian.Uint32(b[28:32])) }

// SetExpStatSN sets the initiator's next expected StatSN.
func (b *BHS) SetExpStatSN(sn SN) { binary.BigEndian.PutUint32(b[28:32], uint32(sn)) }

// StatSN is the status sequence number of a PDU from the target.
func (b *BHS) StatSN() SN { return SN(binary.BigEndian.Uint32(b[24:28])) }

// SetStatSN sets the status sequence number of a PDU from the target.
func (b *BHS) SetStatSN(sn SN) { binary.BigEndian.PutUint32(b[24:28], uint32(sn)) }

// ExpCmdSN is, in a PDU from the target, the next CmdSN it expects.
func (b *BHS) ExpCmdSN() SN { return SN(binary.BigEndian.Uint32(b[28:32])) }

// SetExpCmdSN sets the target's next expected CmdSN.
func (b *BHS) SetExpCmdSN(sn SN) { binary.BigEndian.PutUint32(b[28:32], uint32(sn)) }

// MaxCmdSN is, in a PDU from the target, the last CmdSN it accepts.
func (b *BHS) MaxCmdSN() SN { return SN(binary.BigEndian.Uint32(b[32:36])) }

// SetMaxCmdSN sets the last CmdSN that the target accepts.
func (b *BHS) SetMaxCmdSN(sn SN) { binary.BigEndian.PutUint32(b[32:36], uint32(sn)) }

// Stamp sets the sequence numbers of a PDU from the target and reports whether it takes
// the StatSN (RFC 7143 4.2.2.1 and 4.2.2.2): one that carries a status, or ends an
// exchange, does; R2T and an unsolicited NOP-In show the next one; a Data-In without
// status has none.
func (b *BHS) Stamp(stat, expCmd, maxCmd SN) (taken bool) {
	b.SetExpCmdSN(expCmd)
	b.SetMaxCmdSN(maxCmd)
	taken = true
	switch b.Opcode() {
	case OpDataIn:
		if !(*DataIn)(b).HasStatus() {
			return false
		}
	case OpR2T:
		taken = false
	case OpNOPIn:
		taken = b.ITT() != ReservedTag
	}
	b.SetStatSN(stat)
	return taken
}

// Padding is the number of zero bytes, 0 to 3, that follow n bytes of a
// segment so that the next one starts at a multiple of 4 (RFC 7143 11.1).
func Padding(n int) int { return -n & 3 }

// setBit sets or clears the bits of mask in *b.
func setBit(b *byte, mask byte, v bool) {
	if v {
		*b |= mask
	} else {
		*b &^= mask
	}
}

// SN is a 32-bit sequence number: CmdSN, StatSN, DataSN or R2TSN. It wraps,
// so numbers are compared by RFC 1982 serial arithmetic (RFC 7143 4.2.2.1),
// never with < or >.
type SN uint32

// half is the distance at which RFC 1982 leaves the order of two 32-bit
// serial numbers undefined; here neither is less than the other.
const half = 1 << 31

// LessThan reports that s comes before o.
func (s SN) LessThan(o SN) bool {
	d := uint32(o - s)
	return d != 0 && d < half
}

// LessEq reports that s is o or comes before it.
func (s SN) LessEq(o SN) bool { return uint32(o-s) < half }

// Add is the number n places after s.
func (s SN) Add(n uint32) SN { return s + SN(n) }

// Sub is the signed distance from o to s: positive when s comes after o.
func (s SN) Sub(o SN) int32 { return int32(s - o) }

// InWindow reports that s lies in [first, last]. A window whose last is just
// before its first is empty, as MaxCmdSN = ExpCmdSN-1 means (RFC 7143 4.2.2.1).
func (s SN) InWindow(first, last SN) bool {
	return first.LessEq(last) && uint32(s-first) <= uint32(last-first)
}
