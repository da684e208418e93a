package verbs

import "net/netip"

// Event is a connection manager event, with nothing of the library's memory.
type Event struct {
	Type   EventType
	Status int32 // a negative errno, or the reason of a reject; 0 otherwise

	// ID is what the event is about. For EventConnectRequest it is new, and
	// the receiver's to accept or reject, and to destroy in the end.
	ID ID

	// Listener is the id that got a connection request; nil otherwise.
	Listener ID

	// Device is that of ID; nil for a listener on the unspecified address.
	Device Device

	// InitiatorDepth is how many RDMA READs THIS side may have outstanding
	// with the peer, and Responder how many the peer wants to have with us:
	// of a connection request, and of a connecting side's EventEstablished.
	InitiatorDepth, Responder uint8

	// RNRRetry is how often this side sends again when the peer has no
	// receive posted.
	RNRRetry uint8

	// PrivateLen is how much of Private the library claims: padded with
	// zeros, so of no meaning for what the peer sent.
	PrivateLen uint8
	Private    [MaxPrivate]byte

	// Local and Peer are the addresses of the connection.
	Local, Peer netip.AddrPort
}

// EventType is a kind of Event, RDMA_CM_EVENT_*.
type EventType uint32

// Events.
const (
	EventConnectRequest EventType = 4  // a listener got a request
	EventConnectError   EventType = 6  // Connect or Accept failed on the way
	EventUnreachable    EventType = 7  // the peer did not answer
	EventRejected       EventType = 8  // the peer rejected; Status is the reason
	EventEstablished    EventType = 9  // both sides may send; the first receive may complete before
	EventDisconnected   EventType = 10 // the peer disconnected, or answered our Disconnect
	EventDeviceRemoval  EventType = 11 // destroy ID, and everything on its device
	EventAddressChange  EventType = 14 // the address moved to another device
	EventTimewaitExit   EventType = 15 // the id's QP number may be used again: nothing to wait for
)

// AsyncEvent is an event of a device.
type AsyncEvent struct {
	Type AsyncType
	QP   uint32 // its number, of AsyncCommEst and AsyncQPFatal and their like
	Port uint8  // of AsyncPortActive and AsyncPortError
}

// AsyncType is a kind of AsyncEvent, IBV_EVENT_*.
type AsyncType uint32

// Asynchronous events. Others may come and mean nothing here.
const (
	AsyncCQError     AsyncType = 0 // a CQ overflowed: all its QPs fail
	AsyncQPFatal     AsyncType = 1
	AsyncQPRequest   AsyncType = 2 // the peer's request was wrong
	AsyncQPAccess    AsyncType = 3 // the peer used a wrong key
	AsyncCommEst     AsyncType = 4 // a message came before EventEstablished: ID.Notify
	AsyncDeviceFatal AsyncType = 8
	AsyncPortActive  AsyncType = 9
	AsyncPortError   AsyncType = 10
)
