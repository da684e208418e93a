package protect

import (
	"encoding/binary"
	"hash/crc32"

	"golang.org/x/sys/unix"
)

// The log is written as a page, of which a loss of power leaves each sector of 512
// bytes old or new. Either will do: a region whose mark did not arrive was not being
// changed yet. So a checksum in each sector tells damage from that.
//
//	0   508  bits
//	508   4  CRC32C of the bits, XOR that of as many zeroes: a sector that was never
//	         written is a sound one without dirty regions
const (
	sectorSize = 512
	sectorBits = sectorSize - 4 // bytes
)

var sumOfNone = crc32.Checksum(make([]byte, sectorBits), castagnoli)

func sumOfSector(bits []byte) uint32 { return crc32.Checksum(bits, castagnoli) ^ sumOfNone }

// encode makes the page of the bits.
func (j *journal) encode() {
	if j.version == unsummed {
		j.page = j.bits
		return
	}
	for i := range logSize / sectorSize {
		sector := j.page[i*sectorSize:][:sectorSize]
		copy(sector, j.bits[i*sectorBits:][:sectorBits])
		binary.LittleEndian.PutUint32(sector[sectorBits:], sumOfSector(sector[:sectorBits]))
	}
}

// read reads the log.
func (j *journal) read() error {
	_, err := unix.Pread(j.fd, j.page[:], logOffset)
	j.decode()
	return err
}

// decode finds the bits in the page. Of a damaged sector no region counts as dirty:
// tuples that are made anew would bless whatever damage there is, while one that does
// not fit is reported to who reads its block.
func (j *journal) decode() {
	j.bits, j.damaged = [logSize]byte{}, nil
	if j.version == unsummed {
		j.bits = j.page
		return
	}
	for i := range logSize / sectorSize {
		sector := j.page[i*sectorSize:][:sectorSize]
		if binary.LittleEndian.Uint32(sector[sectorBits:]) != sumOfSector(sector[:sectorBits]) {
			j.damaged = append(j.damaged, i)
			continue
		}
		copy(j.bits[i*sectorBits:], sector[:sectorBits])
	}
}
