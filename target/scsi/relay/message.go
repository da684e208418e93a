package relay

import "lunar/target/scsi/sense"

// Version is the first byte of each message and answer.
const Version = 2

// Type is what a message is.
type Type byte

// The types.
const (
	TypeBegin Type = 1 + iota
	TypeEnd
	TypeExecute
	TypeAbort
	TypeManage
	TypeWant
	TypePart
	typeAnswer
)

// Begin tells of a nexus. Of one that is known with Again, all commands are ended before the
// answer: what the sender has not heard of does not run any more.
type Begin struct {
	Nexus     uint64 // number by which the sender speaks of it
	Again     bool   // it was told of before
	ReadOnly  bool   // see Execute
	Tag       uint16 // of the target portal group
	LUN       uint64
	Volume    string
	Initiator string // initiator port name
	Target    string // iSCSI name
	Holder    string // whom shares of what is limited count for
	Group     string // and
	User      string // who has proven to be behind the initiator; empty: nobody
}

// End tells that a nexus has ended.
type End struct{ Nexus uint64 }

// Execute is a command. Data is the first part of its Data-Out: all of it, or as much as is sent
// unasked.
type Execute struct {
	Nexus     uint64
	Task      uint64 // number, ascending within the nexus
	Attribute uint8
	HasOut    bool
	HasIn     bool
	ReadOnly  bool // its initiator may only read
	EDTL      uint32
	ReadEDTL  uint32
	CDB       []byte
	Data      []byte
}

// Abort ends a command, which is answered nevertheless.
type Abort struct{ Nexus, Task uint64 }

// Manage is a task management function, with iSCSI's code (RFC 7143 section 11.5.1), about the
// logical unit of a nexus.
type Manage struct {
	Nexus    uint64
	Function uint8
}

// Want asks for Data-Out. What answers it is the data, and less of them if the command ends.
type Want struct {
	Volume      string
	Task        uint64
	Offset, Len uint32
}

// Part is Data-In ahead of the answer.
type Part struct {
	Volume string
	Task   uint64
	Offset uint32
	Data   []byte
}

// Outcome is what has become of a message.
type Outcome uint8

// The outcomes.
const (
	Done    Outcome = iota // the command has ended with a status; the rest was done
	Aborted                // the command was ended without a status
	Cut                    // the command was ended because its sender had lost the link
	NotHere                // another server serves the logical unit: nothing has happened
	NoNexus                // the nexus is not known: nothing has happened
	outcomes
)

// Answer is what all messages but Want are answered with.
type Answer struct {
	Outcome    Outcome
	Status     uint8
	Takes      bool // Length is of Data-Out
	Descriptor bool // the unit's sense data are in descriptor format
	Length     uint32
	Offset     uint32 // of Data
	Took       uint32 // microseconds from when the server had the message until it answered
	Sense      *sense.Data
	Data       []byte
}
