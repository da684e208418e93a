package scsi

import (
	"lunar/backstore"
	"lunar/internal/buf"
)

// CDB is a command descriptor block: the operation code in byte 0, the rest
// as its table row says. Bytes beyond Length are zero.
type CDB [32]byte

// TaskAttribute is SAM-5's task attribute (clause 8.6), with iSCSI's codes
// (RFC 7143 section 11.3.1).
type TaskAttribute uint8

// The task attributes.
const (
	Untagged TaskAttribute = iota
	Simple
	Ordered
	HeadOfQueue
	ACA
)

// MaxSegments is how many segments of one command may be under way at once.
const MaxSegments = 4

// Command is one SCSI command from its arrival to Port.Complete. The port
// allocates and reuses it; between Execute and Complete (or the final
// SendDataIn) it belongs to the device server, which touches it only on the
// event thread of its lane.
type Command struct {
	// What the port fills in before Execute.
	CDB       CDB
	CDBLength int           // bytes of CDB that the initiator sent (16, more with an extended CDB)
	Attribute TaskAttribute // ordering
	Nexus     *Nexus        // initiator, logical unit and mapping
	Lane      backstore.Lane
	Port      Port
	EDTL      uint32 // the initiator's expected transfer length in bytes
	HasOut    bool   // EDTL speaks of Data-Out
	HasIn     bool   // EDTL speaks of Data-In
	// Immediate is the command's complete Data-Out when it arrived whole
	// with the command, lying in the receive buffer: valid, and to be read
	// without Alloc and ReceiveDataOut, until Execute returns. Else nil.
	Immediate []byte

	// What the port reads at the end.
	Status Status
	Sense  *Sense // with CheckCondition
	// Length is what the CDB asks to be transferred in bytes, after
	// truncation to an allocation length; with EDTL it gives the residual.
	Length uint32

	// Parameter is parameter data that SendDataIn sends with a nil ref. It
	// is the command's own until the port has sent it.
	Parameter []byte

	row  *Row
	seg  [MaxSegments]segment
	head uint32 // segments that have ended (all before it were sent or stored)
	tail uint32 // segments that were started
	next uint32 // byte offset of the next segment to start

	running  int            // backstore operations in the lane's hands
	fault    *Sense         // first failure: nothing more is started, the rest drains
	aborted  bool           // task management ended the command
	resume   func(*Command) // continuation after Alloc or the extent guard said not now
	dataOut  func(*Command, uint32)
	opDone   func(*Command, *segment)
	list     *buf.Ref // Data-Out parameter list, released at the end
	extent   extent   // range held in the extent guard
	finished bool
}

// segment is one piece of a command's data on its way.
type segment struct {
	op   backstore.Op
	cmd  *Command
	ref  *buf.Ref
	off  uint32 // buffer offset
	n    uint32
	done bool
}

// transfer returns how many bytes move: what the CDB asks for, but no more
// than the initiator expects in that direction.
func (c *Command) transfer() uint32 {
	if c.HasIn || c.HasOut {
		return min(c.Length, c.EDTL)
	}
	return 0
}
