package verbs

import "unsafe"

// SGE is a local segment: struct ibv_sge, 16 bytes.
type SGE struct {
	Addr uint64 // Addr of the memory
	Len  uint32 // bytes
	LKey uint32 // of the region that holds all of it; any with FlagInline
}

// Addr is the address of b's first byte for an SGE or for a peer.
func Addr(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// WR is an entry of a send queue, 24 bytes:
//
//	0  wr_id   u64
//	8  raddr   u64
//	16 rkey    u32
//	20 op      u8
//	21 flags   u8
//	22 nsge    u16
type WR struct {
	ID    uint64 // comes back in WC.ID; also of unsignaled entries, when they are flushed
	RAddr uint64 // the peer's address: RDMA WRITE and RDMA READ
	RKey  uint32 // the peer's key for RAddr; the key to invalidate with OpSendInv
	Op    Op
	Flags Flags
	NSGE  uint16 // how many segments of the list belong to it
}

// Op is what an entry of a send queue does.
type Op uint8

// Operations. On one QP each takes effect at the peer in the order of posting,
// except that an RDMA READ may still be under way when what follows it runs,
// unless that has FlagFence.
const (
	OpSend    Op = 0 // a message into the peer's next receive
	OpSendInv Op = 1 // the same, and the peer's key RKey becomes invalid
	OpWrite   Op = 2 // RDMA WRITE of the segments to RAddr
	OpRead    Op = 3 // RDMA READ from RAddr into the segments
)

// Flags of an entry of a send queue, IBV_SEND_*.
type Flags uint8

// Flags.
const (
	FlagFence     Flags = 1 << 0 // waits for earlier RDMA READs
	FlagSignaled  Flags = 1 << 1 // has a completion even on success
	FlagSolicited Flags = 1 << 2 // of no meaning here, because CQs are armed for all completions
	FlagInline    Flags = 1 << 3 // the data is copied during the post; not for RDMA READ
)

// WC is a completion, 32 bytes of 32-bit words after its id. With a status
// other than StatusOK only ID, Status and QP are valid.
type WC struct {
	ID     uint64  // of the WR or receive
	Status Status  // StatusOK or why it failed
	Op     WCOp    // what completed
	Len    uint32  // bytes received or read
	QP     uint32  // QP.Number
	Flags  WCFlags // of a receive
	Inv    uint32  // with WCWithInv: the key of this side that became invalid
}

// WCOp is what completed, IBV_WC_*.
type WCOp uint32

// Completed operations.
const (
	WCSend  WCOp = 0 // OpSend or OpSendInv
	WCWrite WCOp = 1
	WCRead  WCOp = 2
	WCRecv  WCOp = 128
)

// WCFlags of a receive, IBV_WC_*.
type WCFlags uint32

// WCWithInv says that the peer used OpSendInv.
const WCWithInv WCFlags = 1 << 3

// Status is how an entry ended, IBV_WC_*.
type Status uint32

// Statuses.
const (
	StatusOK              Status = 0
	StatusLocalLength     Status = 1  // a receive too short for its message; a message over Caps.MaxMessage
	StatusLocalQP         Status = 2  // an entry that the QP cannot do
	StatusLocalProtection Status = 4  // an SGE outside of its region, or with a wrong key
	StatusFlushed         Status = 5  // the QP had failed
	StatusBadResponse     Status = 7  // the peer answered nonsense
	StatusLocalAccess     Status = 8  // a receive's memory may not be written
	StatusRemoteInvalid   Status = 9  // the peer's receive is too short (or StatusRemoteOperation), or a key cannot be invalidated
	StatusRemoteAccess    Status = 10 // RAddr or RKey is not valid for this
	StatusRemoteOperation Status = 11 // the peer could not do its part
	StatusRetryExceeded   Status = 12 // the peer does not answer
	StatusRNRExceeded     Status = 13 // the peer had no receive posted
	StatusFatal           Status = 19
	StatusGeneral         Status = 21
)
