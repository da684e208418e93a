package scsi

import (
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/taskset"
)

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
// event thread of its lane. It must not be copied after its first Execute.
type Command struct {
	// What the port fills in before Execute.
	CDB       CDB
	CDBLength int           // bytes of CDB that the initiator sent (16, more with an extended CDB)
	Attribute TaskAttribute // its order among others: tasks.go
	Nexus     *Nexus        // initiator, logical unit and mapping
	Lane      backstore.Lane
	Port      Port
	EDTL      uint32 // the initiator's expected transfer length in bytes
	HasOut    bool   // EDTL speaks of Data-Out
	HasIn     bool   // EDTL speaks of Data-In, unless HasOut
	// ReadEDTL is the expected length of Data-In with both HasOut and HasIn (RFC 7143
	// section 11.2.2.4). No command is bidirectional, so one of them moves nothing.
	ReadEDTL uint32
	// Immediate is the command's complete Data-Out when it arrived whole
	// with the command, lying in the receive buffer, else nil. It is read
	// during Execute only, and only if the medium takes it at once. If not,
	// ReceiveDataOut asks for the same bytes, during Execute or later: data
	// that Execute did not ask for is the port's to keep.
	Immediate []byte

	// What the port reads at the end.
	Status Status
	Sense  *sense.Data // with CheckCondition
	// Length is what the CDB asks to be transferred in bytes, after
	// truncation to an allocation length; with EDTL it gives the residual.
	Length uint32
	// Takes says that Length is one of Data-Out.
	Takes bool

	// Parameter is parameter data that SendDataIn sends with a nil ref. It
	// is the command's own until the port has sent it.
	Parameter []byte

	// Effort is what the command has cost the event thread besides what every one
	// does: KiB of parameter data that were made, sent or not, and nexuses asked.
	Effort int

	row    *Row
	step   func(*Command) // starts what can be started; runs until ending
	lba    uint64         // of the CDB
	count  uint64         // logical blocks of the CDB
	fua    bool           // writes go to stable media
	shield shield         // what it has to do with protection information
	flush  uint64         // number of the flush that is under way

	seg   [MaxSegments]segment
	limit uint32 // bytes of data that really move
	next  uint32 // offset of the next segment to start
	head  uint32 // segments that have ended (all before it were sent or stored)
	tail  uint32 // segments that were started

	list   *buf.Ref       // Data-Out parameter list or working buffer, released at the end
	data   []byte         // the parameter list within list
	parsed func(*Command) // continues when data is there

	out     uint32     // segments and lists that ReceiveDataOut was asked for and have not come
	inline  int64      // bytes of operations in this turn that ended at once
	running int        // segments in the hands of the lane or the extent guard
	final   *segment   // the segment whose SendDataIn ends the command
	pumping bool       // step is on the stack
	again   bool       // something happened while step was on the stack
	refused bool       // Immediate was not taken at once: the lane is not asked so again
	missed  bool       // an operation was not served by a cache
	starved bool       // Alloc said not now and Resume has not come
	landing bool       // what Landing returns
	ending  bool       // nothing more is started
	aborted bool       // task management ended the command
	fault   sense.Data // storage of a Sense with parameters
	work    work       // of commands with several operations in sequence

	awaiting atomic.Bool // see Awaiting; the registrar sets it

	turn  taskset.Turn // in the task set; zero: it was not watched, or it has not entered
	place *place       // in the task set, if others wait for it or it for them

	reads     bool    // it reads what an atomic write may be about
	sanitizes bool    // it makes the sanitize operation, which keeps all others away
	elsewhere bool    // see Elsewhere
	feature   feature // nil for a plain READ or WRITE
}

// feature is what a command keeps that few commands have: its part in a copy, in a
// sanitize operation or among atomic writes, or its way to another server.
type feature interface {
	// cancel is called when the command is to end. It takes the command out of any
	// wait for others, and reports whether there was one.
	cancel(c *Command) bool
	// ended follows the last operation of a command that ends.
	ended(c *Command)
	// discarded follows a panic of the command. It releases everything that others wait
	// for. With running, operations of the command are still under way in the lane.
	discarded(c *Command, running bool)
}

// work is the progress of a command that makes operations in sequence.
type work struct {
	kind  backstore.Kind
	at    uint64 // next LBA
	left  uint64 // logical blocks to go
	index int    // of the descriptor or block in question
	check check  // of what is verified
}

// check is what is done with each segment, in this order; then it is read.
type check struct {
	receive bool // Data-Out comes for it
	write   bool // which is written
	compare bool // and compared with what was read
}

// Row returns the command's table row; nil before Execute and for unsupported
// operation codes.
func (c *Command) Row() *Row { return c.row }

// Landing reports, during Port.Alloc, that all of the buffer is for Data-Out:
// the next ReceiveDataOut will ask for exactly the n bytes of Data-Out that
// follow what was asked for before, into the whole buffer. A port that has them
// in a buffer of n bytes already may hand over that one.
func (c *Command) Landing() bool { return c.landing }

// Adopt makes a fresh command, whose nexus, lane, port and CDB are set, the one
// that goes on with from in the background.
func (c *Command) Adopt(from *Command, start func(*Command)) {
	c.row = from.row
	if at := controlByte(&c.CDB); at > 0 {
		c.CDB[at] &^= nacaBit // no status, no ACA condition
	}
	c.bind()
	start(c)
}

// AppendSense appends c.Sense in the format that the control mode page's
// D_SENSE of the command's logical unit asks for.
func (c *Command) AppendSense(dst []byte) []byte {
	descriptor := c.Nexus.LU != nil && c.Nexus.LU.State().DescriptorSense
	return c.Sense.Append(dst, descriptor)
}
