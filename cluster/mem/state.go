package mem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lunar/cluster"
	"lunar/cluster/internal/alive"
)

// state is a node's cluster.State.
type state struct {
	net    *Network
	node   string
	closed context.Context
	close  context.CancelFunc
	mu     sync.Mutex
	leases []*alive.Lease
}

// State returns that of a node, by whose name its faults are set. A node may have
// several, as after a restart.
func (n *Network) State(node string) cluster.State {
	s := &state{net: n, node: node}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

func (s *state) Get(ctx context.Context, prefix string) (items []cluster.Item, at cluster.Revision, err error) {
	type answer struct {
		items []cluster.Item
		at    cluster.Revision
	}
	got := make(chan answer, 1)
	err = s.ask(ctx, func() error {
		items, at := s.net.Store.Get(prefix)
		got <- answer{items, at}
		return nil
	})
	if errors.Is(err, cluster.ErrUnknown) {
		err = fmt.Errorf("%s: %w", s.node, errors.Join(cluster.ErrNoQuorum, ctx.Err()))
	}
	if err != nil {
		return nil, 0, err
	}
	a := <-got
	return a.items, a.at, nil
}

func (s *state) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Revision, error) {
	got := make(chan cluster.Revision, 1)
	err := s.ask(ctx, func() error {
		at, err := s.net.Store.Commit(conditions, changes)
		got <- at
		return err
	})
	if err != nil {
		return 0, err
	}
	return <-got, nil
}

func (s *state) Watch(ctx context.Context, prefix string, from cluster.Revision) <-chan cluster.Batch {
	out := make(chan cluster.Batch)
	go func() {
		defer close(out)
		for {
			b, ok := s.next(ctx, prefix, from)
			if !ok {
				return
			}
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.Err != nil {
				return
			}
			from = b.Revision
		}
	}()
	return out
}

// next awaits the next Batch; false: ctx has ended.
func (s *state) next(ctx context.Context, prefix string, from cluster.Revision) (cluster.Batch, bool) {
	for {
		changed := s.net.Changed()
		r, open, mended := s.net.reach(s.node)
		if b := s.net.Since(prefix, from); open && (b.Err != nil || len(b.Events) > 0) {
			sleep(ctx, s.closed, r.takes())
			if _, open, _ = s.net.reach(s.node); open {
				return b, ctx.Err() == nil
			}
		}
		select {
		case <-changed:
		case <-mended:
		case <-s.closed.Done():
			return cluster.Batch{Err: cluster.ErrClosed}, true
		case <-ctx.Done():
			return cluster.Batch{}, false
		}
	}
}

// sleep ends early with one of the contexts.
func sleep(a, b context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.Done():
	case <-b.Done():
	}
}

func (s *state) Lease(ctx context.Context, ttl time.Duration) (cluster.Lease, error) {
	got := make(chan cluster.LeaseID, 1)
	sent := time.Now()
	err := s.ask(ctx, func() error {
		got <- s.net.Grant(s.net.now(), ttl)
		s.net.watchLeases()
		return nil
	})
	if err != nil {
		return nil, err
	}
	id := <-got
	l := alive.Keep(id, sent, ttl, alive.Ways{
		KeepAlive: func(ctx context.Context) error {
			return s.ask(ctx, func() error {
				defer s.net.watchLeases()
				return s.net.KeepAlive(s.net.now(), id)
			})
		},
		Revoke: func(ctx context.Context) error {
			err := s.ask(ctx, func() error { return s.net.Revoke(id) })
			if errors.Is(err, cluster.ErrNoLease) {
				return nil
			}
			return err
		},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(slices.DeleteFunc(s.leases, (*alive.Lease).Over), l)
	if s.closed.Err() != nil {
		l.End()
	}
	return l, nil
}

// ask is Network.ask until the State is closed.
func (s *state) ask(ctx context.Context, do func() error) error {
	if s.closed.Err() != nil {
		return cluster.ErrClosed
	}
	return s.net.ask(ctx, s.node, do)
}

func (s *state) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	for _, l := range s.leases {
		l.End()
	}
	return nil
}
