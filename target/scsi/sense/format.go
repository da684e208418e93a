package sense

import (
	"encoding/binary"
	"math"
)

// MaxLength is the most bytes that Data.Append adds.
const MaxLength = 8 + informationDescriptorLength + specificDescriptorLength

// Lengths of sense data and its descriptors in bytes.
const (
	fixedSenseLength            = 18
	informationDescriptorLength = 12
	specificDescriptorLength    = 8
)

// Response codes (SPC-4 clause 4.5.1).
const (
	fixedCurrent      = 0x70
	descriptorCurrent = 0x72
)

// Append appends s as the initiator reads it: in descriptor format (72h, 73h;
// SPC-4 clause 4.5.2) or in fixed format (70h, 71h; clause 4.5.3). It does not
// allocate when dst has room for MaxLength bytes.
func (s *Data) Append(dst []byte, descriptor bool) []byte {
	if descriptor {
		return s.appendDescriptors(dst)
	}
	return s.appendFixed(dst)
}

// appendFixed leaves INFORMATION out when it does not fit into its four bytes
// (SBC-3, sense data of direct access block devices).
func (s *Data) appendFixed(dst []byte) []byte {
	var b [fixedSenseLength]byte
	b[0] = s.responseCode(fixedCurrent)
	b[2] = byte(s.Key)
	if s.InfoValid && s.Info <= math.MaxUint32 {
		b[0] |= 0x80 // VALID
		binary.BigEndian.PutUint32(b[3:], uint32(s.Info))
	}
	b[7] = fixedSenseLength - 8 // ADDITIONAL SENSE LENGTH
	b[12], b[13] = s.ASC.Code(), s.ASC.Qualifier()
	s.putSpecific(b[15:18])
	return append(dst, b[:]...)
}

func (s *Data) appendDescriptors(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, s.responseCode(descriptorCurrent), byte(s.Key), s.ASC.Code(), s.ASC.Qualifier(), 0, 0, 0, 0)
	if s.InfoValid {
		dst = append(dst, 0x00, informationDescriptorLength-2, 0x80, 0)
		dst = binary.BigEndian.AppendUint64(dst, s.Info)
	}
	var specific [3]byte
	if s.putSpecific(specific[:]) {
		dst = append(dst, 0x02, specificDescriptorLength-2, 0, 0)
		dst = append(dst, specific[:]...)
		dst = append(dst, 0)
	}
	dst[start+7] = byte(len(dst) - start - 8) // ADDITIONAL SENSE LENGTH
	return dst
}

// responseCode turns the code of current sense data into that of deferred.
func (s *Data) responseCode(current byte) byte {
	if s.Deferred {
		return current + 1
	}
	return current
}

// putSpecific fills the three bytes of sense-key specific data (SPC-4 clause
// 4.5.2.4) and reports whether there are any: a field pointer, or the progress
// of a background operation.
func (s *Data) putSpecific(b []byte) bool {
	switch {
	case s.FieldValid:
		b[0] = 0x80 // SKSV
		if s.FieldInCDB {
			b[0] |= 0x40 // C/D
		}
		if s.BitValid {
			b[0] |= 0x08 | s.Bit&0x07 // BPV, BIT POINTER
		}
		binary.BigEndian.PutUint16(b[1:], s.Field)
	case s.ProgressValid:
		b[0] = 0x80 // SKSV
		binary.BigEndian.PutUint16(b[1:], s.Progress)
	default:
		return false
	}
	return true
}
