package daemon

import (
	"encoding/binary"
	"fmt"
	"slices"

	"lunar/internal/initiator"
)

// tuples lets reads and writes carry protection information (SBC-3 clause 4.21): a
// guard, an application tag and a reference tag behind each block.
type tuples struct{ volumeVariant }

const tupleLength = 8

// apply reports whether the step is a command that may carry it.
func (p *tuples) apply(s *step) bool {
	switch s.cdb[0] {
	case 0x28, 0x88, 0x2a, 0x8a, 0x2e, 0x8e: // READ, WRITE, WRITE AND VERIFY of 10 and 16 bytes
		return true
	}
	return false
}

// run performs a step that reads or writes blocks, with their tuples.
func (p *tuples) run(s *step, c *initiator.Conn, lun uint64) error {
	with := *s
	with.cdb = slices.Clone(s.cdb)
	with.cdb[1] |= 1 << 5 // RDPROTECT, WRPROTECT
	first := int(binary.BigEndian.Uint32(s.cdb[2:]))
	if s.cdb[0] >= 0x80 {
		first = int(binary.BigEndian.Uint64(s.cdb[2:]))
	}
	with.out = nil
	for i := 0; i < len(s.out); i += p.unit {
		with.out = append(with.out, s.out[i:i+p.unit]...)
		with.out = p.tuple(with.out, s.out[i:i+p.unit], first+i/p.unit)
	}
	with.in += s.in / p.unit * tupleLength
	if s.check != nil {
		with.check = func(in []byte) error { return p.stripped(s, in, first) }
	}
	return with.run(c, lun)
}

// tuple appends that of a block. With type 3 the reference tag is not the
// server's.
func (p *tuples) tuple(to, block []byte, lba int) []byte {
	to = binary.BigEndian.AppendUint16(to, guardOf(block))
	to = binary.BigEndian.AppendUint16(to, 0x4c55)
	if p.protection == 3 {
		lba = 7
	}
	return binary.BigEndian.AppendUint32(to, uint32(lba))
}

// stripped checks what was read, and its tuples. All ones say that a block was
// never written, or is not mapped.
func (p *tuples) stripped(s *step, in []byte, first int) error {
	var data []byte
	for at := 0; at+p.unit+tupleLength <= len(in); at += p.unit + tupleLength {
		block, tuple := in[at:at+p.unit], in[at+p.unit:][:tupleLength]
		data = append(data, block...)
		if binary.BigEndian.Uint64(tuple) == 1<<64-1 {
			continue
		}
		lba := first + at/(p.unit+tupleLength)
		if guard := binary.BigEndian.Uint16(tuple); guard != guardOf(block) {
			return fmt.Errorf("LBA %d: found guard %04x, expected %04x", lba, guard, guardOf(block))
		}
		if tag := binary.BigEndian.Uint32(tuple[4:]); p.protection == 1 && tag != uint32(lba) {
			return fmt.Errorf("LBA %d: found reference tag %d", lba, tag)
		}
	}
	return s.check(data)
}

// guards is the table of the CRC with the polynomial 18BB7h (SBC-3 clause 4.21.4).
var guards = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc & 0x8000
			if crc <<= 1; carry != 0 {
				crc ^= 0x8bb7
			}
		}
		table[i] = crc
	}
	return table
}()

func guardOf(block []byte) (crc uint16) {
	for _, b := range block {
		crc = crc<<8 ^ guards[byte(crc>>8)^b]
	}
	return crc
}
