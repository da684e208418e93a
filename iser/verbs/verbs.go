package verbs

import (
	"net/netip"
	"time"
)

// Provider is access to the RDMA devices of a host.
type Provider interface {
	// Devices are the devices that the host had when the provider was
	// opened. A device that comes later shows in Event.Device only.
	Devices() []Device

	// OpenEvents makes a channel of connection manager events.
	OpenEvents() (EventChannel, error)

	// Close ends the use of the devices, when nothing is left on them.
	Close() error
}

// Device is an RDMA device. The same device is always the same value.
type Device interface {
	// Name is the kernel's, such as mlx5_0 or rxe0.
	Name() string

	// Caps are the device's limits and abilities.
	Caps() Caps

	// AllocPD makes a protection domain (ibv_alloc_pd).
	AllocPD() (PD, error)

	// OpenCompletions makes a completion channel (ibv_create_comp_channel).
	OpenCompletions() (CompChannel, error)

	// CreateCQ makes a completion queue of at least cqe entries whose events
	// go to ch (ibv_create_cq); vector chooses the interrupt,
	// 0 <= vector < Caps.CompVectors.
	CreateCQ(cqe int, ch CompChannel, vector int) (CQ, error)

	// AsyncFD is a descriptor that is readable when NextAsync has something.
	AsyncFD() int

	// NextAsync takes the next asynchronous event into e and acknowledges it;
	// false if there is none now.
	NextAsync(e *AsyncEvent) (bool, error)
}

// Caps are a device's limits and abilities (ibv_query_device, and
// ibv_query_port of its first port for MaxMessage).
type Caps struct {
	MaxRegion         uint64 // bytes of one memory region
	MaxMessage        uint32 // bytes of one SEND, RDMA WRITE or RDMA READ
	MaxQP             int    // queue pairs of the device
	MaxWR             int    // entries of one send or receive queue
	MaxSendSGE        int    // local segments of one SEND or RDMA WRITE
	MaxReadSGE        int    // local segments of one RDMA READ
	MaxCQE            int    // entries of one completion queue
	MaxResponder      int    // RDMA READs that a peer may have outstanding with one QP
	MaxInitiatorDepth int    // RDMA READs that one QP may have outstanding with its peer
	CompVectors       int    // interrupts to choose from, at least 1
	MemoryManagement  bool   // MEM_MGT_EXTENSIONS: SEND_WITH_INV is possible
	IWARP             bool   // what an RDMA READ fills must be registered with AccessRemoteWrite
	NodeGUID          uint64 // in host order; 0 if it has none
	Firmware          string // version; "" if it tells none
}

// Access is what may be done with a memory region, IBV_ACCESS_*.
type Access uint32

// Access rights. Reading by the host's own QPs is always allowed.
const (
	AccessLocalWrite      Access = 1 << 0  // receive into it, RDMA READ into it
	AccessRemoteWrite     Access = 1 << 1  // peers may RDMA WRITE it
	AccessRemoteRead      Access = 1 << 2  // peers may RDMA READ it
	AccessRelaxedOrdering Access = 1 << 20 // optional: ignored by devices that lack it
)

// PD is a protection domain: a QP uses only regions of its own.
type PD interface {
	// Register pins mem and makes it known to the device (ibv_reg_mr). mem is
	// mapped memory; it stays mapped, as it is, until Deregister.
	Register(mem []byte, access Access) (MR, error)

	// Dealloc frees the domain, when its regions and QPs are gone.
	Dealloc() error
}

// MR is a memory region.
type MR interface {
	// LKey is for the SGEs of this host's QPs.
	LKey() uint32

	// RKey is for peers; of no meaning without a remote access right.
	RKey() uint32

	// Deregister unpins the memory. No posted entry may name it any more.
	Deregister() error
}

// CompChannel is where completion queues tell that they are not empty.
type CompChannel interface {
	// FD is non-blocking and readable while events wait: level-triggered
	// epoll, then Drain.
	FD() int

	// Drain takes and acknowledges all events that wait, and returns how many.
	Drain() (int, error)

	// Destroy closes the channel, when its CQs are gone.
	Destroy() error
}

// CQ is a completion queue. Overflow is fatal for all its QPs: its users
// together must not have more entries posted than it has room for (SQ and RQ
// sizes of all QPs, for simplicity).
type CQ interface {
	// Poll moves completions to out and returns how many; 0 if there are none.
	Poll(out []WC) (int, error)

	// Arm asks for one event when the next completion is added
	// (ibv_req_notify_cq). Completions that are there already do not count:
	// poll once more after arming, before sleeping.
	Arm() error

	// Size is the number of entries that it really has.
	Size() int

	// Destroy frees it, when its QPs are gone. It waits for events that were
	// not taken with Drain.
	Destroy() error
}

// QPLimits is how much a QP has room for. Send.. concern the send queue.
type QPLimits struct {
	SendWR  int // entries of the send queue; unsignaled ones are freed by the next signaled one that is polled
	RecvWR  int // entries of the receive queue
	SendSGE int // local segments of an entry
	Inline  int // most bytes of an entry with FlagInline
}

// QP is the queue pair of a reliable connection (IBV_QPT_RC). Its receives have
// one segment each.
type QP interface {
	// Number is what completions of the QP carry; unique on the device while
	// the QP exists.
	Number() uint32

	// Limits is what the QP was granted: at least what was asked for.
	Limits() QPLimits

	// PostSend queues entries in order. sges are the local segments of all
	// entries, one after the other: WR.NSGE for each. At most MaxPost entries
	// ring the doorbell together. posted is how many were queued: less than
	// all only with an error. With ENOMEM the send queue was full. Posting to
	// a failed QP is no error, what was posted is flushed.
	PostSend(wrs []WR, sges []SGE) (posted int, err error)

	// PostRecv queues a receive for each id, with the segment at the same
	// index. Posting is possible as soon as the QP exists, before its
	// connection is accepted. What is posted to a failed QP may never
	// complete.
	PostRecv(ids []uint64, sges []SGE) (posted int, err error)

	// Fail moves the QP to the error state without telling the peer
	// (ibv_modify_qp): everything posted is flushed.
	Fail() error

	// Destroy frees the QP (rdma_destroy_qp). Its completions that were not
	// polled may be lost; what it had posted is the caller's again.
	Destroy() error
}

// MaxPost is how many entries one doorbell of PostSend or PostRecv takes;
// longer lists ring it again.
const MaxPost = 64

// EventChannel delivers the events of connection manager ids. All its methods
// belong to one control goroutine.
type EventChannel interface {
	// FD is non-blocking and readable while events wait.
	FD() int

	// Next takes the next event into e, with copies of all that it carries,
	// and acknowledges it; false if there is none now.
	Next(e *Event) (bool, error)

	// Listen takes connection requests to an address in the TCP port space,
	// which has nothing to do with the ports of TCP. The unspecified address
	// means all devices, port 0 any free one (ID.LocalAddr tells). With IPv6,
	// IPv4 is not included.
	Listen(addr netip.AddrPort, backlog int) (ID, error)

	// Resolve finds the device and the way to a listening peer: the first
	// step of an initiator. The id is ready for CreateQP and Connect.
	Resolve(addr netip.AddrPort, timeout time.Duration) (ID, error)

	// Close closes the channel, when its ids are destroyed.
	Close() error
}

// ConnParam is what one side asks for or agrees to (rdma_conn_param).
type ConnParam struct {
	// InitiatorDepth is how many RDMA READs this side may have outstanding.
	// 0 means none: the first one would wait for ever.
	InitiatorDepth uint8

	// Responder is how many RDMA READs the peer may have outstanding.
	Responder uint8

	// RNRRetry is how often the PEER sends again when we have no receive
	// posted; 7 means for ever.
	RNRRetry uint8

	// Retry is how often a connecting side sends again without an
	// acknowledgement, at most 7. Accept ignores it.
	Retry uint8

	// Private is sent along, at most MaxPrivate bytes. It is read during the
	// call only.
	Private []byte
}

// MaxPrivate is how much private data an id takes: what remains of a connection
// request of the TCP port space.
const MaxPrivate = 56

// ID is a connection manager id: a listener, or one connection.
type ID interface {
	// Device is nil for a listener on the unspecified address.
	Device() Device

	// LocalAddr is the address on this side.
	LocalAddr() netip.AddrPort

	// PeerAddr is the address of the other side; invalid for a listener.
	PeerAddr() netip.AddrPort

	// CreateQP makes the connection's queue pair (rdma_create_qp), with one
	// CQ for both directions; no entry of the send queue is signaled unless
	// it says so.
	CreateQP(pd PD, cq CQ, limits QPLimits) (QP, error)

	// Accept agrees to a connection request; EventEstablished follows, or
	// one that tells of the failure.
	Accept(p ConnParam) error

	// Reject answers a connection request with private data; the id has to
	// be destroyed afterwards.
	Reject(private []byte) error

	// Connect asks the peer for a connection; EventEstablished follows, or
	// EventRejected and others.
	Connect(p ConnParam) error

	// Notify tells that AsyncCommEst was seen, so that the connection counts
	// as established although the peer's last message was lost. Failure
	// because it is established already is no error.
	Notify() error

	// Disconnect ends the connection or answers the peer's end, and moves the
	// QP to the error state. Doing it twice, or on a connection that has
	// ended, is no error. An established connection gets EventDisconnected
	// in any case.
	Disconnect() error

	// Destroy frees the id, after its QP. No event names it afterwards.
	Destroy() error
}
