package scsi

import (
	"encoding/binary"
	"math"
	"math/bits"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// Fields of READ CAPACITY(16) data (SBC-3), byte 14.
const (
	capacityLBPME = 0x80 // logical block provisioning: blocks can be unmapped
	capacityLBPRZ = 0x40 // unmapped blocks read as zeroes
)

// checkCapacityLBA checks the obsolete LOGICAL BLOCK ADDRESS and PMI fields,
// which SBC-2 defined: the LBA speaks only with PMI set. No block here is much
// slower to reach than the one before it, so that the answer is the last LBA
// either way.
func checkCapacityLBA(lba uint64, pmi bool, blocks uint64) *sense.Data {
	switch {
	case lba != 0 && !pmi:
		return sense.InvalidFieldInCDB(2, sense.NoBit)
	case lba != 0 && lba >= blocks:
		return sense.LBAOutOfRange
	}
	return nil
}

// readCapacity10 returns the last LBA, or FFFFFFFFh where it does not fit, and
// the block length.
func readCapacity10(blocks uint64, blockSize int) []byte {
	data := make([]byte, 8)
	binary.BigEndian.PutUint32(data, uint32(min(blocks-1, math.MaxUint32)))
	binary.BigEndian.PutUint32(data[4:], uint32(blockSize))
	return data
}

// readCapacity16 returns the same with 64 bits for the LBA, and with the
// physical block length and the provisioning of the backing store.
func readCapacity16(blocks uint64, blockSize, physicalBlock int, info backstore.Info) []byte {
	data := make([]byte, 32)
	binary.BigEndian.PutUint64(data, blocks-1)
	binary.BigEndian.PutUint32(data[8:], uint32(blockSize))
	data[13] = physicalExponent(blockSize, physicalBlock)
	if info.Discard {
		data[14] = capacityLBPME
		if info.DiscardZeroes {
			data[14] |= capacityLBPRZ
		}
	}
	return data
}

// physicalExponent returns the binary logarithm of the logical blocks per
// physical block; all physical blocks start at a multiple of that LBA.
func physicalExponent(blockSize, physicalBlock int) byte {
	perPhysical := uint(max(1, physicalBlock/blockSize))
	return byte(min(15, bits.Len(perPhysical)-1))
}

func runReadCapacity10(c *Command) {
	lu := c.Nexus.LU
	blocks := lu.State().Blocks
	lba := uint64(binary.BigEndian.Uint32(c.CDB[2:]))
	sense := checkCapacityLBA(lba, c.CDB[8]&0x01 != 0, blocks)
	data := readCapacity10(blocks, lu.config.BlockSize)
	c.answer(data, uint32(len(data)), sense)
}

func runReadCapacity16(c *Command) {
	lu := c.Nexus.LU
	blocks := lu.State().Blocks
	lba := binary.BigEndian.Uint64(c.CDB[2:])
	sense := checkCapacityLBA(lba, c.CDB[14]&0x01 != 0, blocks)
	data := readCapacity16(blocks, lu.config.BlockSize, lu.traits.Load().physical, lu.traits.Load().info)
	data[12] = typeCodes[lu.protect].capacity
	c.answer(data, binary.BigEndian.Uint32(c.CDB[10:]), sense)
}
