package scsi

import "testing"

// TestGroupNumber: READ and WRITE of 10, 12 and 16 bytes have one, in its place.
func TestGroupNumber(t *testing.T) {
	for opcode := range 256 {
		cdb := CDB{0: byte(opcode), 6: 0xe5, 10: 0xea, 14: 0xf0}
		number, ok := GroupNumber(&cdb)
		want := map[int]uint8{0x28: 5, 0x2a: 5, 0xa8: 10, 0xaa: 10, 0x88: 16, 0x8a: 16}
		if expected, has := want[opcode]; ok != has || ok && number != expected {
			t.Errorf("operation code %#02x: found %d %v, expected %d %v", opcode, number, ok, expected, has)
		}
		if row := index[opcode].row; ok && row.Usage[groupBytes[opcode]]&groupField != groupField {
			t.Errorf("%s: its usage map is without GROUP NUMBER, which may be set", row.Name)
		}
	}
}
