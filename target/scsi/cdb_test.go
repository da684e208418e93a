package scsi

import (
	"encoding/binary"
	"io"
	"log/slog"
)

// cdb10, cdb12 and cdb16 build media CDBs with flags in byte 1.
func cdb10(opcode, flags byte, lba, count uint64) []byte {
	b := make([]byte, 10)
	b[0], b[1] = opcode, flags
	binary.BigEndian.PutUint32(b[2:], uint32(lba))
	binary.BigEndian.PutUint16(b[7:], uint16(count))
	return b
}

func cdb12(opcode, flags byte, lba, count uint64) []byte {
	b := make([]byte, 12)
	b[0], b[1] = opcode, flags
	binary.BigEndian.PutUint32(b[2:], uint32(lba))
	binary.BigEndian.PutUint32(b[6:], uint32(count))
	return b
}

func cdb16(opcode, flags byte, lba, count uint64) []byte {
	b := make([]byte, 16)
	b[0], b[1] = opcode, flags
	binary.BigEndian.PutUint64(b[2:], lba)
	binary.BigEndian.PutUint32(b[10:], uint32(count))
	return b
}

func cdb6(opcode byte, lba, count uint64) []byte {
	b := make([]byte, 6)
	binary.BigEndian.PutUint32(b, uint32(lba))
	b[0], b[4] = opcode, byte(count)
	return b
}

// unmapList builds the parameter list of UNMAP.
func unmapList(extents ...[2]uint64) []byte {
	b := make([]byte, 8)
	for _, e := range extents {
		b = binary.BigEndian.AppendUint64(b, e[0])
		b = binary.BigEndian.AppendUint32(b, uint32(e[1]))
		b = append(b, 0, 0, 0, 0)
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)-8))
	return b
}

func unmapCDB(list []byte) []byte { return cdb10(0x42, 0, 0, uint64(len(list))) }

func testLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
