package scsi

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"lunar/target/scsi/sense"
)

func opcodesCDB(options, opcode byte, action int) []byte {
	return []byte{0xa3, 0x0c, options, opcode, byte(action >> 8), byte(action), 0, 0, 0xff, 0xff, 0, 0}
}

const withTimeouts = 0x80

const goldenTimeouts = "000a 00 00 00000000 00000000"

func TestOneCommand(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	const (
		unsupported  = "00 01 0000"
		inquiry      = "00 03 0006 12 01 ff ff ff 04"
		readCapacity = "00 03 0010 9e 10 ff ff ff ff ff ff ff ff ff ff ff ff 01 04"
	)
	tests := []struct {
		name   string
		cdb    []byte
		golden string
	}{
		{"1: without service actions", opcodesCDB(1, 0x12, 0), inquiry},
		{"1: the requested service action is ignored", opcodesCDB(1, 0x12, 7), inquiry},
		{"1: unsupported", opcodesCDB(1, 0xc1, 0), unsupported},
		{"1: timeouts", opcodesCDB(1|withTimeouts, 0x12, 0), "00 83 0006 12 01 ff ff ff 04" + goldenTimeouts},
		{"2: with service actions", opcodesCDB(2, 0x9e, 0x10), readCapacity},
		{"2: no such service action", opcodesCDB(2, 0x9e, 0x11), unsupported},
		{"2: no such operation code", opcodesCDB(2, 0xc1, 0), unsupported},
		{"3: without service actions", opcodesCDB(3, 0x12, 0), inquiry},
		{"3: without service actions, but asked for one", opcodesCDB(3, 0x12, 1), unsupported},
		{"3: with service actions", opcodesCDB(3, 0x9e, 0x10), readCapacity},
		{"3: no such service action", opcodesCDB(3, 0x9e, 0x1f), unsupported},
		{"3: unsupported, timeouts", opcodesCDB(3|withTimeouts, 0xc1, 0), unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { equal(t, d.good(tt.cdb, nil), tt.golden) })
	}
}

func TestReportingOptionsRefused(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.refused(opcodesCDB(1, 0x9e, 0x10), nil, sense.InvalidFieldInCDB(2, 2))
	d.refused(opcodesCDB(2, 0x12, 0), nil, sense.InvalidFieldInCDB(2, 2))
	for options := byte(4); options < 8; options++ {
		d.refused(opcodesCDB(options, 0x12, 0), nil, sense.InvalidFieldInCDB(2, 2))
	}
	d.refused(opcodesCDB(0x40, 0, 0), nil, sense.InvalidFieldInCDB(2, 6))
}

// command is a decoded command descriptor of the all_commands data.
type command struct {
	opcode   byte
	action   uint16
	flags    byte
	length   int
	timeouts []byte
}

// decodeCommands reads all_commands parameter data.
func decodeCommands(t testing.TB, data []byte) (list []command) {
	if len(data) < 4 || int(binary.BigEndian.Uint32(data)) != len(data)-4 {
		t.Fatalf("COMMAND DATA LENGTH of %d bytes: %x", len(data), data)
	}
	for data = data[4:]; len(data) > 0; {
		c := command{data[0], binary.BigEndian.Uint16(data[2:]), data[5], int(binary.BigEndian.Uint16(data[6:])), nil}
		data = data[8:]
		if c.flags&0x02 != 0 {
			c.timeouts, data = data[:12], data[12:]
		}
		list = append(list, c)
	}
	return list
}

// TestAllCommandsAgreeWithTable asks for every command in the list by itself,
// as libiscsi's ReportSupportedOpcodes suite does.
func TestAllCommandsAgreeWithTable(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	list := decodeCommands(t, d.good(opcodesCDB(0, 0, 0), nil))
	if want := len(d.nexus.LU.supportedCommands()); len(list) != want {
		t.Errorf("%d commands reported, the logical unit has %d", len(list), want)
	}
	for _, c := range list {
		right, wrong := byte(1), byte(2)
		if c.flags&0x01 != 0 {
			right, wrong = 2, 1
		} else if c.action != 0 {
			t.Errorf("%02x: service action %x without SERVACTV", c.opcode, c.action)
		}
		d.refused(opcodesCDB(wrong, c.opcode, int(c.action)), nil, sense.InvalidFieldInCDB(2, 2))
		one := d.good(opcodesCDB(right, c.opcode, int(c.action)), nil)
		if size := int(binary.BigEndian.Uint16(one[2:])); size != c.length || size != len(one)-4 {
			t.Errorf("%02x/%x: CDB size %d and %d", c.opcode, c.action, c.length, size)
		}
		if one[1] != commandSupported || one[4] != c.opcode || c.flags&0x01 != 0 && one[5]&0x1f != byte(c.action) {
			t.Errorf("%02x/%x: one_command data %x", c.opcode, c.action, one)
		}
	}
}

func TestAllCommandsWithTimeouts(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	plain := decodeCommands(t, d.good(opcodesCDB(0, 0, 0), nil))
	timed := decodeCommands(t, d.good(opcodesCDB(withTimeouts, 0, 0), nil))
	if len(plain) != len(timed) {
		t.Fatalf("%d and %d commands", len(plain), len(timed))
	}
	for i, c := range timed {
		equal(t, c.timeouts, goldenTimeouts)
		if plain[i].flags&0x02 != 0 || plain[i].opcode != c.opcode {
			t.Errorf("command %d: %+v without timeouts", i, plain[i])
		}
	}
}

// TestUsageDataIsEnforced: a CDB made of bits within the reported usage data is
// accepted by the table, one more bit is refused and pointed at.
func TestUsageDataIsEnforced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SampledFrom(commands).Draw(t, "row")
		usage := oneCommand(row, false)[4:]
		cdb := CDB{usage[0]}
		for i := 1; i < len(usage); i++ {
			cdb[i] = rapid.Byte().Draw(t, "byte") & usage[i]
		}
		action, long := row.ServiceAction >= 0, row.Opcode == variableLength
		switch {
		case long: // these bytes are values
			cdb[7], cdb[8], cdb[9] = usage[7], usage[8], usage[9]
		case action:
			cdb[1] |= byte(row.ServiceAction)
		}
		found, s := lookup(&cdb)
		if found != row || s != nil || row.check(&cdb) != nil {
			t.Fatalf("%s: % x within usage data % x refused", row.Name, cdb, usage)
		}
		field, bit := rapid.IntRange(1, row.Length-1).Draw(t, "field"), rapid.IntRange(0, 7).Draw(t, "bit")
		if usage[field]&(1<<bit) != 0 || action && !long && field == 1 && bit < 5 || long && 7 <= field && field <= 9 {
			return
		}
		cdb[field] |= 1 << bit
		if got := row.check(&cdb); got != sense.InvalidFieldInCDB(field, bit) {
			t.Fatalf("%s: % x: %+v, want byte %d bit %d", row.Name, cdb, got, field, bit)
		}
	})
}

func TestCommandsOfAThickUnit(t *testing.T) {
	info := diskInfo()
	info.Discard = false
	d := newDisk(t, info, LUConfig{Name: "v"})
	for _, c := range decodeCommands(t, d.good(opcodesCDB(0, 0, 0), nil)) {
		if c.opcode == 0x42 {
			t.Error("UNMAP is reported")
		}
	}
	equal(t, d.good(opcodesCDB(1, 0x42, 0), nil), "00 01 0000")
}

func TestReportTaskManagementFunctions(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	cdb := []byte{0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0}
	equal(t, d.good(cdb, nil), "fa 00 00 00")
	cdb[2] = 0x80
	equal(t, d.good(cdb, nil), "fa 00 00 0c 000000000000000000000000")
}
