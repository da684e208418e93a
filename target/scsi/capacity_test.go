package scsi

import (
	"bytes"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

func TestReadCapacity10(t *testing.T) {
	tests := []struct {
		name   string
		blocks uint64
		golden string
	}{
		{"one block", 1, "00000000 00000200"},
		{"usual", 0x1000, "00000fff 00000200"},
		{"largest that fits", 0xffffffff, "fffffffe 00000200"},
		{"smallest that does not", 0x100000000, "ffffffff 00000200"},
		{"large", 1 << 40, "ffffffff 00000200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { equal(t, readCapacity10(tt.blocks, 512), tt.golden) })
	}
}

func TestReadCapacity16(t *testing.T) {
	thick := backstore.Info{PhysicalBlock: 512}
	thin := backstore.Info{PhysicalBlock: 4096, Discard: true}
	zeroing := thin
	zeroing.DiscardZeroes = true
	const rest = "00000000000000000000000000000000"
	tests := []struct {
		name      string
		blockSize int
		info      backstore.Info
		golden    string
	}{
		{"thick", 512, thick, "0000000123456788 00000200 00 00 0000" + rest},
		{"thin, 4 KiB physical blocks", 512, thin, "0000000123456788 00000200 00 03 8000" + rest},
		{"thin, zeroes", 4096, zeroing, "0000000123456788 00001000 00 00 c000" + rest},
		{"physical block unknown", 512, backstore.Info{}, "0000000123456788 00000200 00 00 0000" + rest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			equal(t, readCapacity16(0x123456789, tt.blockSize, tt.info.PhysicalBlock, tt.info), tt.golden)
		})
	}
}

func TestReadCapacityPMI(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"}) // 2048 blocks
	ten := func(lba, pmi byte) []byte { return []byte{0x25, 0, 0, 0, lba, 0, 0, 0, pmi, 0} }
	equal(t, d.good(ten(0, 0), nil), "000007ff 00000200")
	equal(t, d.good(ten(0, 1), nil), "000007ff 00000200")
	equal(t, d.good(ten(7, 1), nil), "000007ff 00000200")
	d.refused(ten(7, 0), nil, sense.InvalidFieldInCDB(2, sense.NoBit))
	d.refused(ten(8, 1), nil, sense.LBAOutOfRange)

	sixteen := func(lba, pmi byte) []byte {
		return []byte{0x9e, 0x10, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, 0, 32, pmi, 0}
	}
	whole := d.good(sixteen(0, 0), nil)
	if got := d.good(sixteen(7, 1), nil); !bytes.Equal(got, whole) {
		t.Errorf("with PMI %x, without %x", got, whole)
	}
	d.refused(sixteen(7, 0), nil, sense.InvalidFieldInCDB(2, sense.NoBit))
	d.refused(sixteen(8, 1), nil, sense.LBAOutOfRange)
}
