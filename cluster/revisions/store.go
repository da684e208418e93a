package revisions

import (
	"context"
	"errors"

	"lunar/cluster"
)

// Store is where a cluster's state has documents. Its methods may be called by any number
// of goroutines.
type Store struct {
	State cluster.State
	Keys  cluster.Keys
}

// kept is how many revisions the state has.
const kept = 10

// History are the revisions that the state has, ascending. Those that cannot be read are left
// out, and the error says which; it is ErrNoQuorum if nothing was read.
func (s Store) History(ctx context.Context) (all []*Document, err error) {
	items, _, err := s.State.Get(ctx, s.Keys.Documents())
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, i := range items {
		d, err := Decode(i.Value)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}

// Newest is the last revision; nil: there is none. It fails with ErrUnreadable, or as Get of the
// state does.
func (s Store) Newest(ctx context.Context) (*Document, error) {
	items, _, err := s.State.Get(ctx, s.Keys.Documents())
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return Decode(items[len(items)-1].Value)
}
