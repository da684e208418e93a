package scsi

import (
	"encoding/binary"
	"testing"

	"lunar/target/scsi/sense"
)

func reportLUNsCDB(selectReport byte, allocation uint32) []byte {
	cdb := make([]byte, 12)
	cdb[0], cdb[2] = 0xa0, selectReport
	binary.BigEndian.PutUint32(cdb[6:], allocation)
	return cdb
}

func TestReportLUNs(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	const all = "00000018 00000000 0000000000000000 0001000000000000 412c000000000000"
	equal(t, d.good(reportLUNsCDB(0, 512), nil), all)
	equal(t, d.good(reportLUNsCDB(1, 512), nil), "00000000 00000000")
	equal(t, d.good(reportLUNsCDB(2, 512), nil), all)
	d.refused(reportLUNsCDB(3, 512), nil, sense.InvalidFieldInCDB(2, 7))
}

func TestReportLUNsWithoutLU(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	n := &Nexus{Map: func() []uint64 { return []uint64{5} }}
	r := d.runAs(n, reportLUNsCDB(0, 512), nil)
	if r.status != Good {
		t.Fatalf("status %02x", r.status)
	}
	equal(t, r.data, "00000008 00000000 0005000000000000")
}

// TestReportLUNsClearsItsAttention and no other.
func TestReportLUNsClearsItsAttention(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.nexus.Attention(sense.ASCReportedLUNsDataChanged)
	d.nexus.Attention(sense.ASCModeParametersChanged)
	d.good(reportLUNsCDB(0, 512), nil)
	d.refused([]byte{0, 0, 0, 0, 0, 0}, nil, &sense.Data{Key: sense.UnitAttention, ASC: 0x2a01})
	d.good([]byte{0, 0, 0, 0, 0, 0}, nil)
}
