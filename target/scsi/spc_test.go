package scsi

import (
	"testing"

	"lunar/target/scsi/sense"
)

// TestInvalidOpcodes: what has no row is refused as its operation code, or as
// its service action.
func TestInvalidOpcodes(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	for opcode := range 256 {
		e := &index[opcode]
		if e.row == nil && e.actions == nil {
			d.refused([]byte{byte(opcode), 0, 0, 0, 0, 0}, nil, sense.InvalidOpcode)
		}
		for action := range byte(32) {
			if e.actions != nil && e.actions[action] == nil {
				cdb, at := []byte{byte(opcode), action, 0, 0, 0, 0}, sense.InvalidFieldInCDB(1, 4)
				if opcode == variableLength {
					cdb, at = []byte{variableLength, 7: additionalLength, 9: action, 31: 0}, sense.InvalidFieldInCDB(8, sense.NoBit)
				}
				d.refused(cdb, nil, at)
			}
		}
	}
}

// TestRowsWellFormed checks what the table must hold to drive dispatch.
func TestRowsWellFormed(t *testing.T) {
	lengths := map[byte]int{0: 6, 1: 10, 2: 10, 3: 32, 4: 16, 5: 12}
	// Where the service action and CONTROL are.
	action := map[bool]int{false: 1, true: 9}
	control := func(row *Row) int {
		if row.Opcode == variableLength {
			return 1
		}
		return row.Length - 1
	}
	for i, row := range commands {
		if row.Length != lengths[row.Opcode>>5] || row.Run == nil || row.Name == "" || row.Usage[0] != row.Opcode {
			t.Errorf("%s: %+v", row.Name, row)
		}
		if row.ServiceAction >= 0 && int(row.Usage[action[row.Opcode == variableLength]]&0x1f) != row.ServiceAction {
			t.Errorf("%s: usage data % x", row.Name, row.Usage)
		}
		if (row.Flags&ParameterList != 0) != (row.List != nil) {
			t.Errorf("%s: parameter list without length, or length without list", row.Name)
		}
		if i > 0 && commands[i-1].Opcode == row.Opcode && commands[i-1].ServiceAction == row.ServiceAction {
			t.Errorf("%s: twice in the table", row.Name)
		}
		if row.Usage[control(row)] != 0 {
			t.Errorf("%s: CONTROL is looked at", row.Name)
		}
	}
}
