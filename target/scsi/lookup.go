package scsi

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// entry is what one operation code leads to: a row, or rows by service action.
type entry struct {
	row     *Row
	actions *[serviceActions]*Row
}

// serviceActions is the range of the SERVICE ACTION field in bits 4 to 0 of
// byte 1.
const serviceActions = 32

// index finds a row by operation code; commands lists all rows in ascending
// order. Both are filled by init, because the tables lead to functions that
// read them.
var (
	index    [256]entry
	commands []*Row
)

func init() {
	for _, table := range [][]Row{spcTable, reservationTable, sbcTable, longTable, copyTable} {
		for i := range table {
			table[i].enlist()
		}
	}
	slices.SortFunc(commands, func(a, b *Row) int {
		return (int(a.Opcode)-int(b.Opcode))*serviceActions + a.ServiceAction - b.ServiceAction
	})
}

// enlist adds the row to the index.
func (r *Row) enlist() {
	r.prepare()
	r.barred, r.class = r.barsOf(), r.classOf()
	commands = append(commands, r)
	e := &index[r.Opcode]
	if r.ServiceAction < 0 {
		e.row = r
		return
	}
	if e.actions == nil {
		e.actions = new([serviceActions]*Row)
	}
	e.actions[r.ServiceAction] = r
}

// prepare derives unused from Usage, whose operation code and service action
// are values, not masks.
func (r *Row) prepare() {
	var unused CDB
	for i := 1; i < r.Length; i++ {
		unused[i] = ^r.Usage[i]
	}
	switch {
	case r.Opcode == variableLength:
		unused[7], unused[8], unused[9] = 0, 0, 0
	case r.ServiceAction >= 0:
		unused[1] &^= serviceActions - 1
	}
	for i := range r.unused {
		r.unused[i] = binary.LittleEndian.Uint64(unused[i*8:])
	}
}

// lookup returns the row of a CDB, or why there is none.
func lookup(cdb *CDB) (*Row, *Sense) {
	if cdb[0] == variableLength {
		return lookupLong(cdb)
	}
	e := &index[cdb[0]]
	if e.row != nil {
		return e.row, nil
	}
	if e.actions == nil {
		return nil, InvalidOpcode
	}
	if row := e.actions[cdb[1]%serviceActions]; row != nil {
		return row, nil
	}
	return nil, InvalidFieldInCDB(1, 4)
}

// check returns INVALID FIELD IN CDB when a bit is set that the row does not
// know.
func (r *Row) check(cdb *CDB) *Sense {
	for i, unused := range r.unused {
		if wrong := binary.LittleEndian.Uint64(cdb[i*8:]) & unused; wrong != 0 {
			return firstWrong(i*8, wrong)
		}
	}
	return nil
}

// firstWrong names the first byte that has bits in wrong, which is a little
// endian word of a CDB, and the byte's leftmost such bit.
func firstWrong(offset int, wrong uint64) *Sense {
	n := bits.TrailingZeros64(wrong) / 8
	return InvalidFieldInCDB(offset+n, bits.Len8(byte(wrong>>(n*8)))-1)
}

// UsesMedium reports that a CDB, of which these are the first bytes, is of a command
// that reads or changes the medium.
func UsesMedium(cdb *[16]byte) bool {
	row := index[cdb[0]].row
	if actions := index[cdb[0]].actions; actions != nil {
		row = actions[cdb[1]%serviceActions]
	}
	return cdb[0] == variableLength || row != nil && row.Access != AccessNone
}

// Exempt reports that the command is exempt from scheduling: it does not use
// the medium, or has to go on when nothing else does. Of a CDB that no row
// knows, only the refusal is left.
func Exempt(c *Command) bool {
	row, _ := lookup(&c.CDB)
	return row == nil || row.Exempt
}
