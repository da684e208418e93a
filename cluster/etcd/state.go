package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"lunar/cluster"
	"lunar/cluster/internal/alive"
)

// Options say how a State reaches etcd.
type Options struct {
	Members []string    // URLs for clients (https://192.0.2.1:2379), at least one; the first is asked first
	TLS     *tls.Config // nil: etcd's members are reached in clear, or by the system's certificates
	// Discover asks the members which members there are, and has those be asked as well.
	Discover bool
	// Patience is how long a request may take over all members (3 s).
	Patience time.Duration
	// Guard is the socket of who revokes this process's leases when it dies; empty: none.
	Guard string
}

const (
	defaultPatience = 3 * time.Second
	pageItems       = 1000 // that are read at a time
)

// State is a cluster.State, and more that members are kept in order with.
type State struct {
	c      *client
	guard  guard
	all    sync.WaitGroup // goroutines that Close waits for
	mu     sync.Mutex
	leases []*alive.Lease
	feels  bool // whether feel runs
}

// Open returns a State. It reaches nobody yet.
func Open(o Options) (*State, error) {
	if len(o.Members) == 0 {
		return nil, errors.New("no member of etcd is given")
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	s := &State{c: newClient(o.Members, o.TLS, o.Patience), guard: guard{path: o.Guard}}
	if o.Discover {
		s.all.Go(s.discover)
	}
	return s, nil
}

// background runs a goroutine until the State is closed, once.
func (s *State) background(runs *bool, run func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !*runs && s.c.closed.Err() == nil {
		*runs = true
		s.all.Go(run)
	}
}

// Get is cluster.State.Get.
func (s *State) Get(ctx context.Context, prefix string) (items []cluster.Item, at cluster.Revision, err error) {
	r := rangeRequest{Limit: pageItems}
	r.Key, r.RangeEnd = within(prefix)
	for {
		var page rangeAnswer
		if err := s.c.ask(ctx, "/v3/kv/range", r, &page, true); err != nil {
			if errors.Is(err, cluster.ErrCompacted) { // between two pages
				return s.Get(ctx, prefix)
			}
			return nil, 0, err
		}
		for i := range page.KVs {
			items = append(items, page.KVs[i].item())
		}
		if r.Revision == 0 {
			r.Revision = page.Header.Revision
		}
		if !page.More || len(page.KVs) == 0 {
			return items, cluster.Revision(r.Revision), nil
		}
		r.Key = append(page.KVs[len(page.KVs)-1].Key, 0)
	}
}

// Commit is cluster.State.Commit. Of some of what is too large etcd does not say that it did nothing.
func (s *State) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Revision, error) {
	if err := cluster.Judge(conditions, changes); err != nil {
		return 0, err
	}
	var r txnRequest
	for _, c := range conditions {
		r.Compare = append(r.Compare, compare{[]byte(c.Key), "MOD", "EQUAL", int64(c.Modified)})
	}
	for _, c := range changes {
		op := requestOp{Put: &put{[]byte(c.Key), c.Value, int64(c.Lease)}}
		if c.Delete {
			op = requestOp{Delete: &rangeRequest{Key: []byte(c.Key)}}
		}
		r.Success = append(r.Success, op)
	}
	var answer txnAnswer
	if err := s.c.ask(ctx, "/v3/kv/txn", r, &answer, false); err != nil {
		return 0, err
	}
	if !answer.Succeeded {
		return 0, cluster.ErrConflict
	}
	return cluster.Revision(answer.Header.Revision), nil
}

// Close is cluster.State.Close.
func (s *State) Close() error {
	s.mu.Lock()
	s.c.close()
	for _, l := range s.leases {
		l.End()
	}
	s.mu.Unlock()
	s.all.Wait()
	s.guard.close()
	s.c.http.CloseIdleConnections()
	return nil
}
