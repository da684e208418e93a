package target

import (
	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/pdu"
)

// Datamover moves the PDUs and the data of one connection in full feature
// phase: the interface between iSCSI and a transport that RFC 5047 describes.
// All methods run on the connection's event thread, and none of them blocks:
// what they are given is queued and leaves together at the end of the
// thread's pass.
type Datamover interface {
	// Attach makes r the receiver and starts delivery to it on the event
	// thread that loop runs.
	Attach(r Receiver, loop *evloop.Loop) error

	// SendControl sends a PDU other than Data-In and R2T. bhs is copied.
	// data is read later: it must stay as it is for ever (or until release
	// of ref, which the datamover takes over when it is not nil).
	SendControl(bhs *pdu.BHS, data []byte, ref *buf.Ref)

	// PutData moves data, which lies in ref or is immutable, to the place
	// that the Data-In header names. It takes over one reference of ref.
	// No more than MaxDataIn bytes.
	PutData(bhs *pdu.DataIn, data []byte, ref *buf.Ref)

	// GetData asks the initiator for the data that the R2T header names;
	// it arrives through Receiver.Place and Receiver.Received.
	GetData(bhs *pdu.R2T)

	// Revoke takes back the place that Receiver.Place named for the PDU
	// that is being received: nothing is written there from now on, and the
	// PDU is delivered with its data elsewhere.
	Revoke()

	// Resume delivers again what had to wait for the connection's turn (see
	// Receiver.Spent). It may bring about anything that a delivery may.
	Resume()

	// MaxDataIn is the most bytes that one PutData may move.
	MaxDataIn() int

	// Detach stops delivery and returns the idle transport for another
	// event thread to attach; false if it is not idle.
	Detach() bool

	// Close drops what is queued, releases its references, and ends the
	// transport. With drain set it first sends what is queued, in bounded
	// time. Receiver.Closed follows, once, possibly before Close returns.
	Close(why error, drain bool)
}

// Receiver is what a Datamover delivers to: the Connection.
type Receiver interface {
	// Spent reports whether the connection has had its share of the thread: the
	// PDU, and all behind it, has to wait until Datamover.Resume. It is asked
	// before anything is done about a PDU, of which the header is there.
	Spent(bhs *pdu.BHS) bool

	// Foresee is shown PDUs that have come and follow each other without digests,
	// before the first of them is delivered, so that what the commands among them need
	// is on its way to the processor's cache meanwhile. It returns how many of them it
	// has looked at; the last one may be incomplete behind its header.
	Foresee(pdus []byte) int

	// Place says where the data segment of the PDU belongs, so that it need
	// not be copied: n bytes, or nil to get the segment from Received. It is
	// asked at most once for a PDU, and only for one whose data segment has
	// not arrived completely.
	Place(bhs *pdu.BHS, n int) []byte

	// Received delivers a whole PDU. data is its data segment without
	// padding: either what Place returned, or memory that is valid until
	// Received returns. badDigest says that the data digest was wrong.
	Received(bhs *pdu.BHS, ahs, data []byte, badDigest bool)

	// Fetched tells that all data that Assistant.Fetch was asked for, by the
	// R2T with these tags, is in place.
	Fetched(itt, ttt uint32)

	// Stamp sets StatSN, ExpCmdSN and MaxCmdSN of a PDU that is about to
	// leave.
	Stamp(bhs *pdu.BHS)

	// Restamp renews ExpCmdSN and MaxCmdSN of a PDU that is sent again.
	Restamp(bhs *pdu.BHS)

	// Heard tells that bytes of the peer have come.
	Heard()

	// Prior reports whether what the connection asks for now goes before what others
	// are being served: see evloop.Prior.
	Prior() bool

	// Promised reports whether that has a reservation or is urgent: what it is
	// answered leaves at once, rather than at the end of the thread's pass.
	Promised() bool

	// Sender returns an event thread of a NUMA node that may send for the
	// connection; nil if that is its own thread, or if there is none.
	Sender(node int) *evloop.Loop

	// Drained is called after a pass in which queued data left.
	Drained()

	// Closed tells that the transport has ended and why; nothing follows.
	Closed(why error)

	// Contain is deferred around every entry from the event loop: it ends
	// the connection whose code panicked, and only it.
	Contain()
}
