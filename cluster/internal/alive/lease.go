// Package alive keeps leases alive, for every State.
package alive

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster"
)

// Ways are how a lease is kept and ended.
type Ways struct {
	// KeepAlive asks once for another ttl, and returns ErrNoLease if the lease is over.
	// Other errors are tried again.
	KeepAlive func(context.Context) error
	Revoke    func(context.Context) error
}

// Lease is a cluster.Lease.
type Lease struct {
	id       cluster.LeaseID
	ttl      time.Duration
	ways     Ways
	began    time.Time    // what deadline counts from
	deadline atomic.Int64 // nanoseconds
	stop     context.CancelFunc
	over     sync.Once
	done     chan struct{}
	idle     chan struct{} // closed when no keepalive is under way any more
}

// Keep keeps a lease alive that was granted in answer to a request that was sent at sent.
func Keep(id cluster.LeaseID, sent time.Time, ttl time.Duration, ways Ways) *Lease {
	ctx, stop := context.WithCancel(context.Background())
	l := &Lease{id: id, ttl: ttl, ways: ways, began: sent, stop: stop, done: make(chan struct{}), idle: make(chan struct{})}
	l.deadline.Store(int64(ttl))
	go l.keep(ctx)
	return l
}

// A lease is renewed three times in its time, and a keepalive that was not answered by
// then is given up; one that failed is sent again after a tenth of the time.
const renewals, attempts = 3, 10

func (l *Lease) keep(ctx context.Context) {
	defer close(l.idle)
	for wait := l.ttl / renewals; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		sent := time.Now()
		attempt, end := context.WithTimeout(ctx, l.ttl/renewals)
		err := l.ways.KeepAlive(attempt)
		end()
		switch {
		case err == nil:
			l.deadline.Store(int64(sent.Sub(l.began) + l.ttl))
			wait = l.ttl / renewals
		case errors.Is(err, cluster.ErrNoLease):
			l.End()
			return
		default:
			wait = l.ttl / attempts
		}
	}
}

// End stops keeping the lease alive, and closes Done.
func (l *Lease) End() {
	l.over.Do(func() { close(l.done) })
	l.stop()
}

// ID is cluster.Lease.ID.
func (l *Lease) ID() cluster.LeaseID { return l.id }

// Deadline is cluster.Lease.Deadline.
func (l *Lease) Deadline() time.Time { return l.began.Add(time.Duration(l.deadline.Load())) }

// Done is cluster.Lease.Done.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Over reports whether Done is closed.
func (l *Lease) Over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Revoke is cluster.Lease.Revoke.
func (l *Lease) Revoke(ctx context.Context) error {
	l.End()
	<-l.idle
	return l.ways.Revoke(ctx)
}
