package scsi

import (
	"encoding/binary"
	"slices"

	"lunar/target/scsi/sense"
)

// REPORTING OPTIONS of REPORT SUPPORTED OPERATION CODES (SPC-4 clause 6.35).
const (
	reportAllCommands   = 0
	reportOpcode        = 1 // an operation code that has no service actions
	reportServiceAction = 2 // one that has
	reportEither        = 3
)

// SUPPORT of the one command format.
const (
	commandNotSupported = 1
	commandSupported    = 3 // as the standard says
)

// Lengths in bytes.
const (
	commandDescriptorLength  = 8
	timeoutsDescriptorLength = 12
)

// opcodeRequest is a decoded REPORT SUPPORTED OPERATION CODES CDB.
type opcodeRequest struct {
	timeouts      bool // RCTD: with command timeouts descriptors
	options       byte
	opcode        byte
	serviceAction uint16
}

func opcodeRequestOf(cdb *CDB) opcodeRequest {
	return opcodeRequest{
		timeouts:      cdb[2]&0x80 != 0,
		options:       cdb[2] & 0x07,
		opcode:        cdb[3],
		serviceAction: binary.BigEndian.Uint16(cdb[4:]),
	}
}

// supportedOperationCodes answers r from the rows of table.
func supportedOperationCodes(table []*Row, r opcodeRequest) ([]byte, *sense.Data) {
	if r.options == reportAllCommands {
		return allCommands(table, r.timeouts), nil
	}
	row, sense := findRow(table, r)
	if sense != nil {
		return nil, sense
	}
	return oneCommand(row, r.timeouts), nil
}

// findRow returns the row that r names, or nil if there is none. Options 1 and
// 2 must suit the operation code.
func findRow(table []*Row, r opcodeRequest) (*Row, *sense.Data) {
	hasActions := slices.ContainsFunc(table, func(row *Row) bool {
		return row.Opcode == r.opcode && row.ServiceAction >= 0
	})
	hasPlain := slices.ContainsFunc(table, func(row *Row) bool {
		return row.Opcode == r.opcode && row.ServiceAction < 0
	})
	action := int(r.serviceAction)
	switch {
	case r.options > reportEither,
		r.options == reportOpcode && hasActions,
		r.options == reportServiceAction && hasPlain:
		return nil, sense.InvalidFieldInCDB(2, 2)
	case r.options == reportOpcode, r.options == reportEither && hasPlain && action == 0:
		action = -1
	}
	i := slices.IndexFunc(table, func(row *Row) bool {
		return row.Opcode == r.opcode && row.ServiceAction == action
	})
	if i < 0 {
		return nil, nil
	}
	return table[i], nil
}

// allCommands returns the all_commands parameter data: a descriptor per row.
func allCommands(table []*Row, timeouts bool) []byte {
	data := make([]byte, 4, 4+len(table)*(commandDescriptorLength+timeoutsDescriptorLength))
	for _, row := range table {
		data = appendCommandDescriptor(data, row, timeouts)
	}
	binary.BigEndian.PutUint32(data, uint32(len(data)-4)) // COMMAND DATA LENGTH
	return data
}

func appendCommandDescriptor(dst []byte, row *Row, timeouts bool) []byte {
	var flags byte
	if timeouts {
		flags |= 0x02 // CTDP
	}
	if row.ServiceAction >= 0 {
		flags |= 0x01 // SERVACTV
	}
	dst = append(dst, row.Opcode, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(max(0, row.ServiceAction)))
	dst = append(dst, 0, flags)
	dst = binary.BigEndian.AppendUint16(dst, uint16(row.Length))
	if timeouts {
		dst = appendTimeouts(dst)
	}
	return dst
}

// oneCommand returns the one_command parameter data for row, nil for a command
// that is not supported.
func oneCommand(row *Row, timeouts bool) []byte {
	if row == nil {
		return []byte{0, commandNotSupported, 0, 0}
	}
	data := []byte{0, commandSupported, 0, 0}
	binary.BigEndian.PutUint16(data[2:], uint16(row.Length)) // CDB SIZE
	data = append(data, usageData(row)...)
	if timeouts {
		data[1] |= 0x80 // CTDP
		data = appendTimeouts(data)
	}
	return data
}

// usageData returns the CDB usage map, in which the operation code and the
// service action stand for themselves.
func usageData(row *Row) []byte {
	usage := slices.Clone(row.Usage[:row.Length])
	usage[0] = row.Opcode
	if row.ServiceAction >= 0 && row.Opcode != variableLength {
		usage[1] = usage[1]&^0x1f | byte(row.ServiceAction)
	}
	return usage
}

// appendTimeouts appends a command timeouts descriptor without any advice.
func appendTimeouts(dst []byte) []byte {
	return append(dst, 0, timeoutsDescriptorLength-2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// supportedCommands returns the rows of the command table that the logical
// unit has, with what it knows of protection information.
func (lu *LogicalUnit) supportedCommands() []*Row {
	rows := slices.DeleteFunc(slices.Clone(commands), func(row *Row) bool { return !lu.supports(row) })
	for i, row := range rows {
		if row.Flags&Protectable != 0 && lu.mayProtect(row) {
			shown := *row
			shown.Usage[flagsByte(&row.Usage)] |= protectField
			rows[i] = &shown
		}
	}
	return rows
}

func runReportSupportedOperationCodes(c *Command) {
	rows := c.Nexus.LU.supportedCommands()
	if c.Nexus.normalACA() {
		for i, row := range rows {
			shown := *row
			shown.Usage[controlByte(&row.Usage)] |= nacaBit
			rows[i] = &shown
		}
	}
	data, sense := supportedOperationCodes(rows, opcodeRequestOf(&c.CDB))
	c.answer(data, binary.BigEndian.Uint32(c.CDB[6:]), sense)
}
