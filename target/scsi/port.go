package scsi

import "lunar/internal/buf"

// Port is the transport's side of a running command: SAM-5's transport
// protocol services (clause 5.4) with buffers made explicit. All calls but
// Wake happen on the event thread that runs the command. But for DataOut, as
// told below, no method calls back into the command before it returns.
type Port interface {
	// Alloc returns a buffer of n bytes (at most SegmentSize) within the
	// session's memory budget, owned by the caller. Nil means not now: the
	// port calls c.Resume once memory is there, unless the command ended
	// before. c.Landing tells what the buffer is for.
	Alloc(c *Command, n int) *buf.Ref

	// Affords reports whether n more bytes fit the session's memory budget now
	// and nobody else waits for it.
	Affords(c *Command, n int) bool

	// Charge counts memory that was lent (buf.Ref.Lent) in the session's budget
	// until its last release. Affords comes before.
	Charge(c *Command, ref *buf.Ref)

	// SendDataIn moves data, which lies in ref (or in c.Parameter when ref
	// is nil), to the initiator at buffer offset off. The port takes over
	// ref and releases it when the transport no longer reads from it.
	// Calls of one command come in ascending, contiguous order. With last
	// set the command ends with GOOD: the port sends the status (in the
	// final Data-In PDU where the protocol allows it) and Complete is not
	// called.
	SendDataIn(c *Command, off uint32, ref *buf.Ref, data []byte, last bool)

	// ReceiveDataOut asks for the len(dst) bytes of Data-Out at buffer
	// offset off into dst. c.DataOut(off, n) is called when all of them are
	// there, possibly before ReceiveDataOut returns (data that came
	// unsolicited is copied or was placed there already). The caller keeps
	// dst; it stays valid until c.DataOut or until c.Abort returns. Calls of
	// one command come in ascending, contiguous order; what lies beyond the
	// last of them when the command ends is not wanted.
	ReceiveDataOut(c *Command, off uint32, dst []byte)

	// Reach returns the first logical unit that match wants among those that
	// the command's initiator has access to, as far as it has proven who it is, in
	// the order in which they are closest: those of its own session come first. ok is false
	// if there is none.
	Reach(c *Command, match func(*Nexus) bool) (unit CSCD, ok bool)

	// Background begins what goes on when the command has ended: start is called
	// once, on this thread, with a command that has the same CDB, nexus and lane
	// but no initiator and no data to move. False says that there is no room for
	// it.
	Background(c *Command, start func(*Command)) bool

	// Wake runs t on the event thread that runs the command. It may be
	// called on any goroutine. The command does not end before t ran.
	Wake(c *Command, t Task)

	// Turn is called when a piece of the command's work begins. It returns how many
	// bytes the command's operations may move until it has to let others have their
	// turn by Again.
	Turn(c *Command) int64

	// Within asks to move n bytes that are neither received nor sent, such as a part
	// of a copy. If they have to wait for others, it returns false, and t runs when the
	// command has its turn. The command does not end before t ran.
	Within(c *Command, n int64, t Task) bool

	// Again runs t in the next turn of the event thread that runs the command, which
	// calls it. The command does not end before t ran.
	Again(c *Command, t Task)

	// Contain is deferred where the backing store, not the port, calls into
	// the command: it recovers from a panic and ends the session that the
	// command belongs to.
	Contain(c *Command)

	// Complete ends the command with c.Status and c.Sense. The command and
	// all that it points to belong to the port again. When c.Aborted() no
	// status is sent.
	Complete(c *Command)
}

// Payments is a Port that charges the initiator's limits for the data that a copy
// moves within the server.
type Payments interface {
	// Pay reports whether the command may move bytes now. They count once as read and
	// once as written. After false, the port calls c.Paid as soon as the command may
	// move them, unless the command ends first. At most one payment is pending.
	Pay(c *Command, bytes int64) bool
}

// Task is work for an event thread.
type Task interface{ Run() }

// SegmentSize is the largest part of a command's data, in bytes, that moves
// between the transport and the backing store in one piece. Larger commands
// are pipelined in segments, so that no command can hold more memory than
// MaxSegments of them.
const SegmentSize = 256 << 10
