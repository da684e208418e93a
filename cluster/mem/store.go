package mem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/cluster"
)

// Store is the contents of a State. It is safe for concurrent use, waits for nothing,
// and does nothing by itself.
type Store struct {
	mu        sync.Mutex
	revision  cluster.Revision
	compacted cluster.Revision // the revisions up to here are forgotten
	items     map[string]cluster.Item
	events    []cluster.Event // behind compacted, in order
	leases    map[cluster.LeaseID]*lease
	lastLease cluster.LeaseID
	room      int // bytes of keys and values that it takes; 0: any
	changed   chan struct{}
}

type lease struct {
	ttl time.Duration
	end time.Time // by the clock of the members
}

// NewStore returns an empty one.
func NewStore() *Store {
	return &Store{items: map[string]cluster.Item{}, leases: map[cluster.LeaseID]*lease{}, changed: make(chan struct{})}
}

// Get returns the keys that begin with prefix, in order, and the revision.
func (s *Store) Get(prefix string) ([]cluster.Item, cluster.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []cluster.Item
	for key, item := range s.items {
		if strings.HasPrefix(key, prefix) {
			found = append(found, item)
		}
	}
	slices.SortFunc(found, func(a, b cluster.Item) int { return cmp.Compare(a.Key, b.Key) })
	return found, s.revision
}

// Commit is cluster.State.Commit. It fails with ErrConflict, ErrNoLease, ErrTooLarge or ErrFull.
func (s *Store) Commit(conditions []cluster.Condition, changes []cluster.Change) (cluster.Revision, error) {
	if err := cluster.Judge(conditions, changes); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conditions {
		if s.items[c.Key].Modified != c.Modified {
			return 0, fmt.Errorf("%s: %w", c.Key, cluster.ErrConflict)
		}
	}
	if err := s.judge(changes); err != nil {
		return 0, err
	}
	next := s.revision + 1
	for _, c := range changes {
		if _, there := s.items[c.Key]; c.Delete && !there {
			continue
		}
		s.put(next, c)
	}
	s.tell()
	return s.revision, nil
}

// judge reports why changes cannot be made.
func (s *Store) judge(changes []cluster.Change) error {
	room := s.room
	for key, item := range s.items {
		if s.room == 0 {
			break
		}
		room -= len(key) + len(item.Value)
	}
	for i, c := range changes {
		if slices.ContainsFunc(changes[:i], func(o cluster.Change) bool { return o.Key == c.Key }) {
			return fmt.Errorf("%s is changed twice at once", c.Key)
		}
		if _, alive := s.leases[c.Lease]; !c.Delete && c.Lease != 0 && !alive {
			return fmt.Errorf("%s: %w", c.Key, cluster.ErrNoLease)
		}
		if room -= len(c.Key) + len(c.Value); !c.Delete && s.room > 0 && room < 0 {
			return cluster.ErrFull
		}
	}
	return nil
}

// put makes one change at a revision, which is the present one from then on.
func (s *Store) put(at cluster.Revision, c cluster.Change) {
	s.revision = at
	item := cluster.Item{Key: c.Key, Modified: at}
	if c.Delete {
		delete(s.items, c.Key)
	} else {
		item.Value, item.Lease = slices.Clone(c.Value), c.Lease
		s.items[c.Key] = item
	}
	s.events = append(s.events, cluster.Event{Item: item, Deleted: c.Delete})
}

// tell wakes who waits for changes.
func (s *Store) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed returns a channel that is closed when something has changed or was forgotten.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Since returns what happened to keys that begin with prefix behind the revision from:
// nothing (a Batch without events and with the present revision), or ErrCompacted as its
// Err.
func (s *Store) Since(prefix string, from cluster.Revision) cluster.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from < s.compacted {
		return cluster.Batch{Err: cluster.ErrCompacted}
	}
	b := cluster.Batch{Revision: s.revision}
	first, _ := slices.BinarySearchFunc(s.events, from+1, func(e cluster.Event, r cluster.Revision) int { return cmp.Compare(e.Modified, r) })
	for _, e := range s.events[first:] {
		if strings.HasPrefix(e.Key, prefix) {
			b.Events = append(b.Events, e)
		}
	}
	return b
}

// Compact forgets the changes of all revisions up to one.
func (s *Store) Compact(to cluster.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = max(s.compacted, min(to, s.revision))
	s.events = slices.DeleteFunc(s.events, func(e cluster.Event) bool { return e.Modified <= s.compacted })
	s.tell()
}

// SetRoom bounds the bytes of keys and values; 0: any.
func (s *Store) SetRoom(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = bytes
}

// Grant begins a lease at now.
func (s *Store) Grant(now time.Time, ttl time.Duration) cluster.LeaseID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastLease++
	s.leases[s.lastLease] = &lease{ttl, now.Add(ttl)}
	return s.lastLease
}

// KeepAlive has a lease last its time from now on. It fails with ErrNoLease.
func (s *Store) KeepAlive(now time.Time, id cluster.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[id]
	if l == nil {
		return cluster.ErrNoLease
	}
	l.end = now.Add(l.ttl)
	return nil
}

// Revoke ends a lease, and deletes its keys. It fails with ErrNoLease.
func (s *Store) Revoke(id cluster.LeaseID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[id] == nil {
		return cluster.ErrNoLease
	}
	s.end(id)
	return nil
}

// end deletes a lease and its keys, all at one revision.
func (s *Store) end(id cluster.LeaseID) {
	delete(s.leases, id)
	var keys []string
	for key, item := range s.items {
		if item.Lease == id {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	next := s.revision + 1
	for _, key := range keys {
		s.put(next, cluster.Change{Key: key, Delete: true})
	}
	s.tell()
}

// Expire ends the leases whose time is over at now.
func (s *Store) Expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var over []cluster.LeaseID
	for id, l := range s.leases {
		if !l.end.After(now) {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	for _, id := range over {
		s.end(id)
	}
}

// Renew has all leases last their time from now on, as a new leader of etcd does.
func (s *Store) Renew(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		l.end = now.Add(l.ttl)
	}
}

// NextEnd is when the first lease ends unless it is kept alive; zero: there is none.
func (s *Store) NextEnd() (first time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.leases {
		if first.IsZero() || l.end.Before(first) {
			first = l.end
		}
	}
	return first
}
