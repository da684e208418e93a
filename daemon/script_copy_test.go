package daemon

import (
	"bytes"
	"encoding/binary"
)

// scriptNAA is the NAA designator of LUN 0; the next LUN's is one more.
const scriptNAA = 0x3000000000000000

// orWrite sets bits of some blocks.
func (s *script) orWrite() {
	lba, n := s.draw(300)
	out := s.data(n)
	blocks := s.at(lba, n)
	for i, b := range out {
		blocks[i] |= b
	}
	s.add(step{name: "ORWRITE", cdb: cdb(0x8b, s.flags(), lba, n), out: out})
}

// extendedCopy copies some of the script's blocks over others, which may be
// the same in part.
func (s *script) extendedCopy() {
	from, n := s.draw(700)
	to, room := s.draw(700)
	n = min(n, room)
	copy(s.at(to, n), bytes.Clone(s.at(from, n)))
	s.add(step{name: "EXTENDED COPY", cdb: copyCDB, list: func(lun uint64) []byte { return s.copyList(lun, from, to, n) }})
}

const copyListLength = 16 + 32 + 28

var copyCDB = []byte{0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, copyListLength, 0, 0}

// copyList is the parameter list of EXTENDED COPY(LID1): header, CSCD
// descriptor with the LUN's NAA designator, segment descriptor from block device
// to block device.
func (m shape) copyList(lun uint64, from, to, n int) []byte {
	be, l := binary.BigEndian, make([]byte, copyListLength)
	l[1] = 3 << 3 // no list identifier
	l[3], l[11] = 32, 28
	cscd, segment := l[16:48], l[48:]
	cscd[0], cscd[4], cscd[5], cscd[7] = 0xe4, 1, 3, 8
	be.PutUint64(cscd[8:], scriptNAA+lun)
	be.PutUint16(cscd[30:], uint16(m.unit))
	segment[0], segment[3] = 0x02, 24
	be.PutUint16(segment[10:], uint16(n))
	be.PutUint64(segment[12:], uint64(from))
	be.PutUint64(segment[20:], uint64(to))
	return l
}
