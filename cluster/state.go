package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that a State returns, to be tested with errors.Is. Any other error is of the
// caller's making (a context that ended before anything was sent, a closed State) or of
// a peer that is no State.
var (
	// ErrConflict: a condition of a Commit does not hold. Nothing has changed.
	ErrConflict = errors.New("somebody else has changed it")
	// ErrNoQuorum: too few members answer. Nothing has changed, and nothing was read.
	ErrNoQuorum = errors.New("no quorum of the cluster's members answers")
	// ErrUnknown: a change was sent and not answered. It has happened, or it has not, or
	// it will: read until a condition tells, and commit with a condition that a late
	// change cannot meet twice.
	ErrUnknown = errors.New("the outcome of a change is unknown")
	// ErrCompacted: the revisions from which a Watch was to begin are forgotten. Get
	// everything anew and watch from there.
	ErrCompacted = errors.New("the revisions asked for are forgotten")
	// ErrFull: the space of the state is used up. Nothing has changed; deletions may
	// still work.
	ErrFull = errors.New("the cluster's state is full")
	// ErrTooLarge: a Commit has more than MostBytes or MostChanges. Nothing has changed.
	ErrTooLarge = errors.New("it is more than the cluster's state takes at once")
	// ErrNoLease: the lease of a Change is over, or never was. Nothing has changed.
	ErrNoLease = errors.New("the lease is over")
	// ErrClosed: the State has been closed.
	ErrClosed = errors.New("the cluster's state is closed")
)

// What a Commit may have: etcd's --max-request-bytes and --max-txn-ops.
const (
	MostBytes   = 3 << 19 // of keys and values that are written
	MostChanges = 128     // and as many conditions
)

// Judge refuses what a State does not take at once, with ErrTooLarge.
func Judge(conditions []Condition, changes []Change) error {
	bytes := 0
	for _, c := range changes {
		bytes += len(c.Key) + len(c.Value)
	}
	if bytes > MostBytes || len(changes) > MostChanges || len(conditions) > MostChanges {
		return fmt.Errorf("%w: found %d bytes, %d changes and %d conditions, expected at most %d and %d of each", ErrTooLarge, bytes, len(changes), len(conditions), MostBytes, MostChanges)
	}
	return nil
}

// Revision orders all changes of a State: each Commit that changes something has a
// higher one than all before it, and all its changes have the same. 0 is before the
// first change.
type Revision int64

// LeaseID names a lease in all processes. 0 is none.
type LeaseID int64

// Item is a key as it was read. Whoever got it owns it; Value must not be changed.
type Item struct {
	Key      string
	Value    []byte
	Modified Revision // of the Commit that wrote it
	Lease    LeaseID  // with which it ends; 0: it stays
}

// Condition is what a Commit demands of a key.
type Condition struct {
	Key      string
	Modified Revision // as Item.Modified; 0: the key must not exist
}

// Change is what a Commit does with a key. A key may have one Change in a Commit.
type Change struct {
	Key    string
	Value  []byte // not kept by the State
	Delete bool   // deletes the key if it exists; Value and Lease are ignored
	Lease  LeaseID
}

// Event is a change that a Watch saw.
type Event struct {
	Item         // of a deletion: Key, and the Revision of the deletion as Modified
	Deleted bool // by a Commit or because its lease ended
}

// Batch is what a Watch reports at a time: all events of its prefix up to a revision,
// in order.
type Batch struct {
	Events   []Event
	Revision Revision // all events up to it have been reported: a Watch from here goes on behind it
	// Err ends the Watch: its channel is closed behind this Batch, which has no events.
	// It is ErrCompacted or ErrClosed; what passes (no quorum, a lost connection) only
	// delays a Watch.
	Err error
}

// State is what a node knows together with others. Methods are safe for concurrent use,
// and end when their context does. All that is read and written is linearizable: who
// reads after a Commit was answered, anywhere, sees it.
type State interface {
	// Get returns all keys that begin with prefix, in order, and the revision at which
	// they were so. It fails with ErrNoQuorum.
	Get(ctx context.Context, prefix string) ([]Item, Revision, error)

	// Commit does all of changes at once if all conditions hold, and returns their
	// revision. It fails with ErrConflict, ErrNoQuorum, ErrUnknown, ErrFull, ErrTooLarge or
	// ErrNoLease. It is sent once: what ErrUnknown leaves open is the caller's to find
	// out. A context that ends while the answer is awaited is ErrUnknown, too.
	Commit(ctx context.Context, conditions []Condition, changes []Change) (Revision, error)

	// Watch reports the changes of keys that begin with prefix whose revisions are
	// higher than from (that of a Get), none twice and none left out. It ends with ctx,
	// which closes the channel. The caller must receive until then: what it does not
	// take waits in memory.
	Watch(ctx context.Context, prefix string, from Revision) <-chan Batch

	// Lease begins a lease, and keeps it alive until it is revoked, or Done is closed.
	// ttl is rounded up to what the State has (etcd: seconds, and no less than one and
	// a half elections). It fails with ErrNoQuorum or ErrUnknown, which leaves at most a
	// lease that nobody has and that ends by itself.
	Lease(ctx context.Context, ttl time.Duration) (Lease, error)

	// Close ends all watches, and keeping leases alive, but revokes none: they end after
	// their time, as if the process had died.
	Close() error
}

// Lease is one that this process holds. Keys with its ID are deleted when it ends.
type Lease interface {
	ID() LeaseID

	// Deadline is the time until which no other node can have seen the lease end, by
	// this machine's monotonic clock: it counts from when the last keepalive that was
	// answered was sent. It moves on with each answer, also again after it was in the
	// past, and costs no more than an atomic load. Clocks of members that run faster
	// than this one's, and a virtual machine whose clock stands still while it is
	// paused, can make it wrong.
	Deadline() time.Time

	// Done is closed when the lease is known to be over: it was revoked, it ended while
	// no keepalive came through, or its State was closed. A Deadline that passed does
	// not close it.
	Done() <-chan struct{}

	// Revoke ends the lease now, and its keys with it. It fails with ErrNoQuorum or
	// ErrUnknown; the lease is no longer kept alive in any case.
	Revoke(ctx context.Context) error
}
