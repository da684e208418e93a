package node

import (
	"context"
	"errors"
	"time"

	"lunar/cluster/ownership"
)

// Volume is what the node does with one volume. Of the methods with a context one at a time
// is called, on any goroutine; the others are called in order by one that must not wait.
type Volume interface {
	// Connect returns the address of a Ceph instance that the cluster has not fenced, and
	// that is none of those that it will fence: a new one, if need be. Open is to use it.
	Connect(ctx context.Context, fenced []string) (address string, err error)
	// Fence returns when none of the instances can write any more. They may be fenced
	// already.
	Fence(ctx context.Context, instances []string) error
	// Open opens the volume, with nothing cached of earlier epochs. It takes the lock if
	// nobody has it, or an instance of fenced, and no other: who has it then is right. It
	// fails if an owner of a later epoch has had the lock, or its instance is not the
	// claim's any more. After an error nothing is open, unless it wraps ErrLate.
	Open(ctx context.Context, claim Claim) (ownership.Disk, error)
	// Close ends what is under way, drops what is cached and gives the lock back. What
	// fails is over nevertheless.
	Close(ctx context.Context) error

	// Refused reports whether Ceph is known to refuse an instance that Connect has returned. It is
	// called by many, and must not wait.
	Refused(address string) bool
	// Silent returns what the volume is in, by a name that is the same on all nodes (empty: it is
	// not known), since when that does not answer this node (zero: it does), and when it has
	// answered last. It is called by many, and must not wait.
	Silent() (store string, since, last time.Time)

	// Serve answers commands as the owner.
	Serve(epoch uint64)
	// Hold lets commands wait. The record is the last known; zero: none is.
	Hold(last ownership.Record)
	// Standby answers that another node owns the volume.
	Standby(owner ownership.Record)
	// Trust lets cached reads be served until a time of this machine's monotonic clock, and
	// none afterwards; the zero time is in the past.
	Trust(until time.Time)
}

// Claim is what a volume is opened by.
type Claim struct {
	Epoch    uint64
	Instance string   // Connect has returned it
	Fenced   []string // instances of earlier epochs
}

// ErrLate is in the error of an Open that may still happen.
var ErrLate = errors.New("it may still happen")

// VolumeConfig says who may own a volume.
type VolumeConfig struct {
	Owners []string // the best first
	Cached bool
	// BlockSize is in bytes; 0: any. Who has another one than the owner never owns the volume.
	BlockSize int
	// Image is what the volume is in, in the same words on all nodes; empty: any. As BlockSize.
	Image    string
	Revision int64         // of the cluster's configuration, that the volume is known by; 0: the node's own
	Failback time.Duration // how long a better node must have lived to get the volume back; 0: never by itself
}
