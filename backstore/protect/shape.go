package protect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The sidecar file: a header page, the log of dirty regions, and the tuples.
//
//	0     8  magic
//	8     4  version
//	12    4  protection type
//	16    8  size of a logical block in bytes
//	24    8  size of the volume in bytes
//	32    8  size of a region in bytes
//	40    4  CRC32C of the bytes before
//	64   16  identity, random; files of earlier versions get one when they are opened
//	80    4  CRC32C of the identity
//	4096     eight sectors (logpage.go) with one bit for each region, the lowest of the
//	         first byte first; in version 1 bits only
//	8192     tuples, inverted
const (
	magic       = "LUNARPI1"
	version     = 2
	unsummed    = 1 // the version whose log has no checksums
	headerSize  = 44
	logOffset   = 4096
	logSize     = 4096
	tupleOffset = logOffset + logSize
	maxRegions  = logSize / sectorSize * sectorBits * 8
	// regionShift is that of the smallest region, 1 MiB.
	regionShift = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// shape is what a sidecar file was made for.
type shape struct {
	kind    Type
	block   int
	size    int64
	version uint32
}

// regionShift makes regions so large that the log has room for all.
func (s shape) regionShift() (shift uint) {
	for shift = regionShift; s.size > int64(roomOf(s.version))<<shift; shift++ {
	}
	return shift
}

// roomOf is how many regions the log of a version has room for.
func roomOf(version uint32) int {
	if version == unsummed {
		return logSize * 8
	}
	return maxRegions
}

func (s shape) regions() int {
	shift := s.regionShift()
	return int((s.size + 1<<shift - 1) >> shift)
}

// fileSize is that of the sidecar file, in whole pages.
func (s shape) fileSize() int64 {
	return (s.end() + 4095) &^ 4095
}

func (s shape) header() []byte {
	h := make([]byte, headerSize)
	le := binary.LittleEndian
	copy(h, magic)
	le.PutUint32(h[8:], s.version)
	le.PutUint32(h[12:], uint32(s.kind))
	le.PutUint64(h[16:], uint64(s.block))
	le.PutUint64(h[24:], uint64(s.size))
	le.PutUint64(h[32:], 1<<s.regionShift())
	le.PutUint32(h[40:], crc32.Checksum(h[:40], castagnoli))
	return h
}

// shapeOf reads a header; false: it is none of a version that is known.
func shapeOf(h []byte) (s shape, ok bool) {
	le := binary.LittleEndian
	s = shape{Type(le.Uint32(h[12:])), int(le.Uint64(h[16:])), int64(le.Uint64(h[24:])), le.Uint32(h[8:])}
	known := s.version == version || s.version == unsummed
	return s, known && le.Uint32(h[40:]) == crc32.Checksum(h[:40], castagnoli) && s.block > 0 && bytes.Equal(h, s.header())
}

func (s shape) to(size int64) shape {
	s.size = size
	return s
}

// end is where the tuples end in the sidecar file.
func (s shape) end() int64 { return tupleOffset + s.size/int64(s.block)*TupleSize }

func (s shape) of(version uint32) shape {
	s.version = version
	return s
}

// mismatch says what is wrong with a header.
func mismatch(h []byte, s shape) string {
	le := binary.LittleEndian
	if string(h[:8]) != magic || le.Uint32(h[40:]) != crc32.Checksum(h[:40], castagnoli) {
		return "found something else, expected a file with protection information"
	}
	if v := le.Uint32(h[8:]); v != version && v != unsummed {
		return fmt.Sprintf("found version %d, expected %d", v, version)
	}
	return fmt.Sprintf("found protection of type %d for %d bytes in blocks of %d, expected type %d for %d bytes in blocks of %d",
		le.Uint32(h[12:]), le.Uint64(h[24:]), le.Uint64(h[16:]), s.kind, s.size, s.block)
}
