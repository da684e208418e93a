package iser

import (
	"time"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/iser/verbs"
	"lunar/target/pdu"
)

// kind is what an entry of the send queue does.
type kind uint8

const (
	kindSend  kind = iota // a PDU
	kindWrite             // RDMA Write
	kindRead              // RDMA Read
)

// String names it for messages.
func (k kind) String() string { return [...]string{"send", "RDMA write", "RDMA read"}[k] }

const (
	// controlMost is the longest data segment that initiators take in full
	// feature phase, whatever they have negotiated (ib_iser's buffers).
	controlMost = 128
	// controlSlot is the room for a PDU in full feature phase, in bytes.
	controlSlot = 256
	// quietMost is how many entries in a row may have no completion: each costs
	// the device an entry of the completion queue and this thread a look at it.
	// Those that hold memory never wait for others but in their own list.
	quietMost = 32
	// quietBytes is how much memory the entries without a completion may hold.
	quietBytes = 256 << 10
	// bounceTime is when memory for what has to be copied is asked for again.
	bounceTime = time.Millisecond
)

// outgoing is an RDMA Write, or a PDU, that has not been posted yet.
type outgoing struct {
	kind   kind
	write  remote // where to
	inv    uint32 // key to invalidate, if hasInv
	hasInv bool
	bhs    pdu.BHS
	data   []byte
	ref    *buf.Ref // released when the device is through with it
}

// fetch is an RDMA Read that has not been posted yet.
type fetch struct {
	from     remote
	dst      []byte
	itt, ttt uint32
}

// work is an entry of the send queue that the device has.
type work struct {
	kind     kind
	signaled bool // its end is told
	bytes    int  // that it moves
	ref      *buf.Ref
	itt, ttt uint32 // of a read
	slots    *slots // of a PDU: where its slot is from
}

// sender is the sending half of a connection. Writes and PDUs leave in order;
// reads, of which only so many may be outstanding, beside them.
type sender struct {
	flush     evloop.Task
	scheduled bool

	out   ring[outgoing]
	fetch ring[fetch]
	work  ring[work] // what the device has, in order
	most  int        // entries of the send queue
	reads int        // of them, RDMA Reads
	told  int        // of them, those whose end is told
	done  uint64     // bytes that have been moved

	quiet struct { // entries behind the last one whose end is told
		n, most int
		bytes   int // that they hold
	}

	inline  int // longest message that the device copies when it is posted
	longest int // data segment that the initiator takes in full feature phase
	small   slots
	large   slots // for texts, of the login and of discovery
}

// slots are registered memory for PDUs on their way out, used in turn.
type slots struct {
	mem  []byte
	size int // of one
	lkey uint32
	next uint32
	busy uint32 // that the device has
}

// take returns the next slot, nil if it is not free yet.
func (s *slots) take() []byte {
	n := uint32(len(s.mem) / s.size)
	if s.busy == n {
		return nil
	}
	slot := s.mem[int(s.next%n)*s.size:][:s.size:s.size]
	s.next++
	s.busy++
	return slot
}

func (tx *sender) pending() bool { return tx.out.len() > 0 || tx.outstanding() > 0 }

// outstanding is how many entries are under way of which the device tells the end. What
// follows the last of them are responses that hold nothing but their slots: the device
// has copied or sent them, or gives them up with the queue pair.
func (tx *sender) outstanding() int { return tx.told }

// at is the work at a position of the send queue.
func (tx *sender) at(i uint32) *work { return tx.work.at(i) }

// discard releases everything that is not posted yet.
func (tx *sender) discard() {
	for tx.out.len() > 0 {
		o := tx.out.pop()
		releaseRef(o.ref)
		*o = outgoing{}
	}
	tx.discardFetches()
}

func (tx *sender) discardFetches() {
	for tx.fetch.len() > 0 {
		*tx.fetch.pop() = fetch{}
	}
}

func releaseRef(ref *buf.Ref) {
	if ref != nil {
		ref.Release()
	}
}

// signal decides about the newest entry whether its end is told: that of what holds
// memory soon, for it is wanted, of others now and then, so that there are always
// free entries.
func (tx *sender) signal(wr *verbs.WR, length int, must bool) {
	w, q := tx.work.last(), &tx.quiet
	if w.signaled {
		return
	}
	if !must {
		q.n++
		if w.kind != kindSend {
			q.bytes += length
		}
	}
	if must || wr.Flags&verbs.FlagSignaled != 0 || q.n >= q.most || q.bytes >= quietBytes && w.kind == kindSend {
		wr.Flags |= verbs.FlagSignaled
		w.signaled = true
		tx.told++
		q.n, q.bytes = 0, 0
	}
}
