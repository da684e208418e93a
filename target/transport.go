package target

import (
	"net/netip"
	"time"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/pdu"
)

// LoginTransport carries the login phase of one connection and then becomes
// its Datamover (RFC 5047 section 8.1.5: Enable_Datamover). It is used by one
// goroutine and may block; Close may come from any.
type LoginTransport interface {
	// Receive returns the next PDU with its data segment, which must be a
	// Login Request.
	Receive() (*pdu.BHS, []byte, error)
	// Send sends a Login Response.
	Send(bhs *pdu.BHS, text []byte) error
	// SetDeadline bounds Receive and Send; zero means for ever.
	SetDeadline(time.Time) error
	// Enable ends the login phase: the connection goes on with the
	// Datamover, which follows the parameters. The LoginTransport is dead
	// afterwards, also when it fails.
	Enable(*login.ConnectionParams) (Datamover, error)
	Close() error

	Local() netip.AddrPort
	Remote() netip.AddrPort
}

// AssistedTransport is the LoginTransport of a connection that goes on in
// iSER-assisted mode (RFC 7145): its Datamover is an Assistant. Discovery
// sessions are served by it too, without the key RDMAExtensions.
type AssistedTransport interface {
	LoginTransport
	// Offer returns what is negotiated over this transport, made of the
	// server's offer.
	Offer(login.Offer) login.Offer
	// Prepare readies the transport for a session of up to depth commands,
	// before the final Login Response leaves (RFC 7145 section 5.1.1:
	// Allocate_Connection_Resources).
	Prepare(r *login.Result, depth int) error
	// Loop is the event thread that serves the connection as long as it lives.
	Loop() *evloop.Loop
}

// Assistant is a Datamover that moves data by itself, without Data-In, R2T and
// Data-Out PDUs of which the initiator knows (RFC 7145 section 7.3). PutData
// moves to the initiator's buffer; it may be of any length and never carries a
// status. GetData is not used.
type Assistant interface {
	Datamover
	// Fetch moves the data that the R2T names from the initiator's buffer to
	// dst. Receiver.Fetched tells the end. Until then, or until
	// Receiver.Closed, dst is the transport's: it cannot be taken back.
	Fetch(bhs *pdu.R2T, dst []byte)
	// Deallocate forgets the initiator's buffers of a task that ends
	// without a SCSI Response (RFC 5047: Deallocate_Task_Resources). After a
	// SCSI Response they are forgotten anyway.
	Deallocate(itt uint32)
	// MaxControl is the longest data segment of SendControl.
	MaxControl() int
}

// Portal is a listening end of a transport (RFC 7143 section 4.1).
type Portal interface {
	// Open begins to listen. Whoever comes waits for Accept, or is turned away by a
	// transport that cannot let them wait. A portal that is closed can be opened again.
	Open() error
	// Accept gives every connection to accept, which does not block, until the portal
	// is closed. It returns at once.
	Accept(accept func(LoginTransport))
	// Name is the address as it was configured, which tells the portal from others of
	// its group and transport.
	Name() string
	// Addr is the address that it is to listen on; once it is open, the one that it
	// listens on.
	Addr() netip.AddrPort
	// Assisted reports whether its connections are AssistedTransports.
	Assisted() bool
	Close() error
}

// Resender is a Datamover that sends PDUs again. Other transports lose none.
type Resender interface {
	Datamover
	// Resend sends a PDU that was stamped before: only what the command window is
	// now is set in it (Receiver.Restamp). data must stay as it is; ref, if not nil, is a
	// reference to it that the transport releases.
	Resend(bhs *pdu.BHS, data []byte, ref *buf.Ref)
}

// Debtor is a Datamover that knows what its peer has yet to do.
type Debtor interface {
	// Owed is asked on the connection's thread.
	Owed() Owed
}

// Owed is what the peer of a connection owes to the transport.
type Owed struct {
	Untaken bool   // it has not taken all that it was sent
	Taken   uint64 // bytes that it has taken so far
	Partial bool   // a PDU has begun to come and is not complete
	Came    uint64 // bytes that have come so far
}
