package scsi

import "lunar/target/scsi/taskset"

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
)

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
	// barred are the bars that keep the command from running.
	barred bars
}
