package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/internal/alive"
)

// Lease is cluster.State.Lease. etcd counts in seconds, and has a least time of one and a
// half elections.
func (s *State) Lease(ctx context.Context, ttl time.Duration) (cluster.Lease, error) {
	sent := time.Now()
	var granted leaseAnswer
	if err := s.c.ask(ctx, "/v3/lease/grant", leaseRequest{TTL: int64((ttl + time.Second - 1) / time.Second)}, &granted, false); err != nil {
		return nil, err
	}
	id := granted.ID
	s.guard.hold(id)
	l := alive.Keep(cluster.LeaseID(id), sent, time.Duration(granted.TTL)*time.Second, alive.Ways{
		KeepAlive: func(ctx context.Context) error { return s.keepAlive(ctx, id) },
		Revoke: func(ctx context.Context) error {
			defer s.guard.release(id)
			_, err := s.EndLease(ctx, id)
			return err
		},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(slices.DeleteFunc(s.leases, (*alive.Lease).Over), l)
	if s.c.closed.Err() != nil {
		l.End()
	}
	return l, nil
}

func (s *State) keepAlive(ctx context.Context, id int64) error {
	s.guard.hold(id)
	var m streamed[leaseAnswer]
	err := s.c.ask(ctx, "/v3/lease/keepalive", leaseRequest{ID: id}, &m, true)
	if errors.Is(err, cluster.ErrNoLease) || err == nil && m.Result.TTL <= 0 {
		s.guard.release(id)
		err = cluster.ErrNoLease
	}
	return err
}

// Leases is how many there are.
func (s *State) Leases(ctx context.Context) (int, error) {
	var a struct {
		Leases []leaseAnswer `json:"leases"`
	}
	err := s.c.ask(ctx, "/v3/lease/leases", struct{}{}, &a, true)
	return len(a.Leases), err
}

// EndLease ends a lease of whoever it is, and reports whether it did: it may have been
// over.
func (s *State) EndLease(ctx context.Context, id int64) (ended bool, err error) {
	err = s.c.ask(ctx, "/v3/lease/revoke", leaseRequest{ID: id}, &struct{}{}, true)
	if errors.Is(err, cluster.ErrNoLease) {
		return false, nil
	}
	return err == nil, err
}
