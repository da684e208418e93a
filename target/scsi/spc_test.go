package scsi

import (
	"testing"
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
	d.refused(writeOneBlock, make([]byte, 512), SoftwareWriteProtected)
	page[4+4] &^= 0x08
	d.good([]byte{0x15, 0x10, 0, 0, byte(len(page)), 0}, page)
	d.good(writeOneBlock, make([]byte, 512))
}

// TestDescriptorSense follows libiscsi's ModeSense6.Control-D_SENSE: the
// format of sense data is the one that the control mode page says.
func TestDescriptorSense(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	failed := &Command{Nexus: d.nexus, Sense: LBAOutOfRange}
	equal(t, failed.AppendSense(nil), "70 00 05 00000000 0a 00000000 2100 00 000000")
	cdb, list := modeSelect6(t, "00 00 00 00"+controlDSense)
	d.good(cdb, list)
	equal(t, failed.AppendSense(nil), "72 05 21 00 000000 00")
	nobody := &Command{Nexus: new(Nexus), Sense: LUNotSupported}
	equal(t, nobody.AppendSense(nil), "70 00 05 00000000 0a 00000000 2500 00 000000")
}

// TestInvalidOpcodes: what has no row is refused as its operation code, or as
// its service action.
func TestInvalidOpcodes(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	for opcode := range 256 {
		e := &index[opcode]
		if e.row == nil && e.actions == nil {
			d.refused([]byte{byte(opcode), 0, 0, 0, 0, 0}, nil, InvalidOpcode)
		}
		for action := range byte(32) {
			if e.actions != nil && e.actions[action] == nil {
				d.refused([]byte{byte(opcode), action, 0, 0, 0, 0}, nil, InvalidFieldInCDB(1, 4))
			}
		}
	}
}

// TestRowsWellFormed checks what the table must hold to drive dispatch.
func TestRowsWellFormed(t *testing.T) {
	lengths := map[byte]int{0: 6, 1: 10, 2: 10, 4: 16, 5: 12}
	for i, row := range commands {
		if row.Length != lengths[row.Opcode>>5] || row.Run == nil || row.Name == "" || row.Usage[0] != row.Opcode {
			t.Errorf("%s: %+v", row.Name, row)
		}
		if row.ServiceAction >= 0 && int(row.Usage[1]&0x1f) != row.ServiceAction {
			t.Errorf("%s: usage data % x", row.Name, row.Usage)
		}
		if (row.Flags&ParameterList != 0) != (row.List != nil) {
			t.Errorf("%s: parameter list without length, or length without list", row.Name)
		}
		if i > 0 && commands[i-1].Opcode == row.Opcode && commands[i-1].ServiceAction == row.ServiceAction {
			t.Errorf("%s: twice in the table", row.Name)
		}
		if row.Usage[row.Length-1] != 0 {
			t.Errorf("%s: CONTROL is looked at", row.Name)
		}
	}
}
