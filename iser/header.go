package iser

import (
	"encoding/binary"
	"fmt"
)

// headerLength is the length of the iSER header before each PDU (RFC 7145 section
// 9.2), in bytes:
//
//	 0  type (4 bits) | W | R | reserved
//	 4  Write STag
//	 8  Write Base Offset
//	16  Read STag
//	20  Read Base Offset
const headerLength = 28

// Fields of the first byte.
const (
	typeMask     = 0xf0
	typeControl  = 0x10 // an iSCSI control-type PDU follows
	typeHello    = 0x20
	writeSTag    = 0x08 // Write STag and Base Offset are valid
	readSTag     = 0x04 // Read STag and Base Offset are valid
	offWriteSTag = 4
	offWriteBase = 8
	offReadSTag  = 16
	offReadBase  = 20
)

// header is the iSER header of a message.
type header [headerLength]byte

// check refuses what is no iSCSI control-type PDU. Hello messages belong to a
// version of the protocol that no implementation uses (RFC 7145 section 5.1.3).
func (h *header) check() error {
	switch h[0] & typeMask {
	case typeControl:
		return nil
	case typeHello:
		return fmt.Errorf("found an iSER Hello message, expected an iSCSI PDU: this target does without Hello")
	}
	return fmt.Errorf("found an iSER message of type %#x, expected %#x", h[0]>>4, typeControl>>4)
}

// remote is a buffer of the initiator.
type remote struct {
	stag uint32
	base uint64 // address of its first byte
	ok   bool
}

// write is the buffer with the data of a write, behind those that came with the
// command.
func (h *header) write() remote {
	return remote{
		stag: binary.BigEndian.Uint32(h[offWriteSTag:]), base: binary.BigEndian.Uint64(h[offWriteBase:]), ok: h[0]&writeSTag != 0,
	}
}

// read is the buffer for the data of a read.
func (h *header) read() remote {
	return remote{
		stag: binary.BigEndian.Uint32(h[offReadSTag:]), base: binary.BigEndian.Uint64(h[offReadBase:]), ok: h[0]&readSTag != 0,
	}
}

// The private data of connection requests and replies: one byte of flags and
// three reserved ones (InfiniBand's annex on iSER).
const (
	privateNoZBVA       = 0x80 // zero-based virtual addresses are not used
	privateNoInvalidate = 0x40 // Send with Invalidate is not used
	privateLength       = 4
)
