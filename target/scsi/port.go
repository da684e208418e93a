package scsi

import "lunar/internal/buf"

// Port is the transport's side of a running command: SAM-5's transport
// protocol services (clause 5.4) with buffers made explicit. All calls happen
// on the event thread that runs the command.
type Port interface {
	// Alloc returns a buffer of n bytes (at most SegmentSize) within the
	// session's memory budget, owned by the caller. Nil means not now: the
	// port calls c.Resume once memory is there.
	Alloc(c *Command, n int) *buf.Ref

	// SendDataIn moves data, which lies in ref (or in c.Parameter when ref
	// is nil), to the initiator at buffer offset off. The port takes over
	// ref and releases it when the transport no longer reads from it.
	// Calls of one command come in ascending, contiguous order. With last
	// set the command ends with GOOD: the port sends the status (in the
	// final Data-In PDU where the protocol allows it) and Complete is not
	// called.
	SendDataIn(c *Command, off uint32, ref *buf.Ref, data []byte, last bool)

	// ReceiveDataOut asks for the n bytes of Data-Out at buffer offset off
	// into dst. c.DataOut(off, n) is called when all of them are there,
	// possibly before ReceiveDataOut returns (data that came unsolicited is
	// copied or was placed there already). The caller keeps dst.
	ReceiveDataOut(c *Command, off uint32, dst []byte)

	// Complete ends the command with c.Status and c.Sense. The command and
	// all that it points to belong to the port again.
	Complete(c *Command)
}

// SegmentSize is the largest part of a command's data, in bytes, that moves
// between the transport and the backing store in one piece. Larger commands
// are pipelined in segments, so that no command can hold more memory than
// MaxSegments of them.
const SegmentSize = 256 << 10
