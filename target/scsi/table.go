package scsi

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/taskset"
)

// Access says what a command does to the medium, for write protection,
// ordering and scheduling.
type Access uint8

// The classes of command.
const (
	AccessNone  Access = iota // no medium access
	AccessRead                // reads the medium
	AccessWrite               // changes the medium or its provisioning
)

// Flags are the row's exceptions from the common checks.
type Flags uint16

// The flags.
const (
	// IgnoreAttention lets the command run although a unit attention or a
	// deferred error is pending, which stays pending (SAM-5 clause 5.14:
	// INQUIRY, REPORT LUNS; REQUEST SENSE reports it itself).
	IgnoreAttention Flags = 1 << iota
	// NoLU lets the command run for a LUN that is not mapped.
	NoLU
	// IgnoreStopped lets the command run after START STOP UNIT stopped the
	// unit.
	IgnoreStopped
	// ParameterList makes Execute fetch the Data-Out parameter list, whose
	// length is List's result, before Run.
	ParameterList
	// NeedsDiscard leaves the row out for a store that cannot release space.
	NeedsDiscard
	// Protectable commands know protection information: bits 7 to 5 of their
	// flags, which Usage leaves out, are allowed if the logical unit has any.
	Protectable
	// NeedsType2 leaves the row out for a logical unit without type 2 protection.
	NeedsType2
	// NeedsExplicitAccess leaves the row out where initiators do not change
	// access states.
	NeedsExplicitAccess
	// NeedsErase leaves the row out for a store that cannot release space so
	// that it reads as zeroes.
	NeedsErase
	// NeedsRemovable leaves the row out for a medium that cannot be removed.
	NeedsRemovable
	// NeedsMedium refuses a command with IgnoreStopped when the medium is
	// ejected.
	NeedsMedium
	// DuringSanitize lets the command run during a sanitize operation, and
	// after one that has failed.
	DuringSanitize
	// NeedsAtomic leaves the row out for a store that cannot write all or nothing.
	NeedsAtomic
	// NeedsCryptoErase leaves the row out for a store that has no key to forget.
	NeedsCryptoErase
	// NeedsWriter refuses the command to a nexus that may only read: it changes what
	// others find, or keeps them from something. AccessWrite says that already.
	NeedsWriter
	// NeedsServer has the command of a logical unit that other servers present, too, wait
	// until it is decided which of them serves it, and run there alone: no other knows
	// what it asks for.
	NeedsServer
)

// needs are the flags that leave a row out somewhere.
const needs = NeedsDiscard | NeedsType2 | NeedsExplicitAccess | NeedsErase | NeedsRemovable | NeedsAtomic | NeedsCryptoErase

// Row is one literal line of the command table. The table drives dispatch,
// CDB validation, write protection and REPORT SUPPORTED OPERATION CODES.
type Row struct {
	Name          string
	Opcode        byte
	ServiceAction int // -1: the opcode has none
	Length        int // CDB length in bytes
	Access        Access
	Flags         Flags
	Conflict      Conflict // with reservations of others
	Reach         Reach    // in which access states it runs
	// Usage is the CDB usage data of SPC-4 clause 6.35: for every bit of
	// the CDB whether it is looked at. A set bit outside it is refused with
	// INVALID FIELD IN CDB.
	Usage CDB
	// Exempt commands are never queued by the scheduler: they are short and
	// others wait for them (COMPARE AND WRITE, TEST UNIT READY, INQUIRY...).
	Exempt bool
	// List returns the length of the Data-Out parameter list in bytes.
	List func(*CDB) uint32
	// Run starts the command. It ends it by one of Command's finishing
	// methods, now or later.
	Run func(*Command)

	// unused are the CDB's bits that must be zero, as little endian words.
	unused [len(CDB{}) / 8]uint64
	// class is what it does, for the order of commands.
	class taskset.Class
	// restricted are the restrictions that keep the command from running.
	restricted restrictions
}

// entry is what one operation code leads to: a row, or rows by service action.
type entry struct {
	row     *Row
	actions *[serviceActions]*Row
}

// serviceActions is the range of the SERVICE ACTION field in bits 4 to 0 of
// byte 1.
const serviceActions = 32

// index finds a row by operation code; commands lists all rows in ascending
// order. Each file of commands enlists its own.
var (
	index    [256]entry
	commands []*Row
)

// enlist makes the rows of a table known. It is called during initialization.
func enlist(table []Row) {
	for i := range table {
		table[i].enlist()
	}
	slices.SortFunc(commands, func(a, b *Row) int {
		return (int(a.Opcode)-int(b.Opcode))*serviceActions + a.ServiceAction - b.ServiceAction
	})
}

// enlist adds the row to the index.
func (r *Row) enlist() {
	r.prepare()
	r.restricted, r.class = r.restrictionsOf(), r.classOf()
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
func lookup(cdb *CDB) (*Row, *sense.Data) {
	if cdb[0] == variableLength {
		return lookupLong(cdb)
	}
	e := &index[cdb[0]]
	if e.row != nil {
		return e.row, nil
	}
	if e.actions == nil {
		return nil, sense.InvalidOpcode
	}
	if row := e.actions[cdb[1]%serviceActions]; row != nil {
		return row, nil
	}
	return nil, sense.InvalidFieldInCDB(1, 4)
}

// check returns INVALID FIELD IN CDB when a bit is set that the row does not
// know.
func (r *Row) check(cdb *CDB) *sense.Data {
	for i, unused := range r.unused {
		if wrong := binary.LittleEndian.Uint64(cdb[i*8:]) & unused; wrong != 0 {
			return firstWrong(i*8, wrong)
		}
	}
	return nil
}

// firstWrong names the first byte that has bits in wrong, which is a little
// endian word of a CDB, and the byte's leftmost such bit.
func firstWrong(offset int, wrong uint64) *sense.Data {
	n := bits.TrailingZeros64(wrong) / 8
	return sense.InvalidFieldInCDB(offset+n, bits.Len8(byte(wrong>>(n*8)))-1)
}

// lookupLong is lookup for operation code 7Fh.
func lookupLong(cdb *CDB) (*Row, *sense.Data) {
	action := int(binary.BigEndian.Uint16(cdb[8:]))
	e := &index[variableLength]
	if action >= serviceActions || e.actions[action] == nil {
		return nil, sense.InvalidFieldInCDB(8, sense.NoBit)
	}
	if cdb[7] != additionalLength {
		return nil, sense.InvalidFieldInCDB(7, sense.NoBit)
	}
	return e.actions[action], nil
}

// CommandName is the name of the command that a CDB, of which these are the first bytes, is
// of; empty: the table does not have it.
func CommandName(cdb *[16]byte) string {
	var all CDB
	copy(all[:], cdb[:])
	row, _ := lookup(&all)
	if row == nil {
		return ""
	}
	return row.Name
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
