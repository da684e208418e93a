package target

import "sync/atomic"

// Refusal is a reason why an event thread has refused something to an initiator, or
// has ended it.
type Refusal int

// The refusals.
const (
	RefusedWithheld  Refusal = iota // a connection: Data-Out did not come in time
	RefusedUntaken                  // a connection: what was sent was not taken in time
	RefusedPartial                  // a connection: a PDU did not come to its end in time
	RefusedHoarded                  // a command, or a connection: it held what others waited for, and did not go on
	RefusedFunction                 // task management of others' tasks, by who may only read
	RefusedWrite                    // a command that writes or changes what others find, by who may not
	RefusedRetention                // to keep the tasks of a lost connection, for want of memory
	Refusals
)

var refusalNames = [Refusals]string{
	RefusedWithheld: "withheld-data",
	RefusedUntaken:  "untaken-data",
	RefusedPartial:  "partial-pdu",
	RefusedHoarded:  "hoarded-buffers",
	RefusedFunction: "read-only-task-management",
	RefusedWrite:    "write-protected",

	RefusedRetention: "retention",
}

// String is the reason in metrics.
func (r Refusal) String() string { return refusalNames[r] }

// refused counts an event thread's refusals: it writes, anyone may read.
type refused struct {
	_ [cacheLine]byte
	n [Refusals]atomic.Uint64
	_ [cacheLine]byte
}

func (r *refused) count(why Refusal) { r.n[why].Add(1) }

// counts returns the refusals by reason.
func (r *refused) counts() map[string]uint64 {
	n := make(map[string]uint64, Refusals)
	for why := range Refusals {
		n[why.String()] = r.n[why].Load()
	}
	return n
}
