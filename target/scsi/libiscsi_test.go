package scsi

import (
	"testing"

	"lunar/target/scsi/sense"
)

var writeOneBlock = []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0}

// TestSoftwareWriteProtect follows libiscsi's ModeSense6.Control-SWP.
func TestSoftwareWriteProtect(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	if mask := d.good(modeSense6(dbd, changeable|0x0a, 0), nil); mask[4+4]&0x08 == 0 {
		t.Fatalf("SWP is not changeable: %x", mask)
	}
	page := d.good(modeSense6(dbd, 0x0a, 0), nil)
	page[4+4] |= 0x08
	d.good([]byte{0x15, 0x10, 0, 0, byte(len(page)), 0}, page)
	protected := d.good(modeSense6(dbd, 0x0a, 0), nil)
	if protected[4+4]&0x08 == 0 || protected[2]&0x80 == 0 {
		t.Errorf("neither SWP nor WP: %x", protected)
	}
	d.refused(writeOneBlock, make([]byte, 512), sense.SoftwareWriteProtected)
	page[4+4] &^= 0x08
	d.good([]byte{0x15, 0x10, 0, 0, byte(len(page)), 0}, page)
	d.good(writeOneBlock, make([]byte, 512))
}

// TestDescriptorSense follows libiscsi's ModeSense6.Control-D_SENSE: the
// format of sense data is the one that the control mode page says.
func TestDescriptorSense(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	failed := &Command{Nexus: d.nexus, Sense: sense.LBAOutOfRange}
	equal(t, failed.AppendSense(nil), "70 00 05 00000000 0a 00000000 2100 00 000000")
	cdb, list := modeSelect6(t, "00 00 00 00"+controlDSense)
	d.good(cdb, list)
	equal(t, failed.AppendSense(nil), "72 05 21 00 000000 00")
	nobody := &Command{Nexus: new(Nexus), Sense: sense.LUNotSupported}
	equal(t, nobody.AppendSense(nil), "70 00 05 00000000 0a 00000000 2500 00 000000")
}

// TestCompareAndWriteOfNothing follows libiscsi's CompareAndWrite.Simple, which
// sends 256 blocks with a NUMBER OF LOGICAL BLOCKS that has wrapped to zero.
func TestCompareAndWriteOfNothing(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	nothing := []byte{0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	d.good(nothing, nil)
	d.refused(nothing, make([]byte, 2*512), sense.InvalidFieldInCDB(13, sense.NoBit))
	if len(d.lane.seen) != 0 {
		t.Errorf("operations %v, want none", d.lane.seen)
	}
}
