package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"lunar/cluster"
)

// Follower is a node to which documents matter. Its methods are called one at a time.
type Follower interface {
	// Follow hears of the newest revision, at the beginning and when there is another. It may
	// hear of one again.
	Follow(*Document)
	// Judge says what a proposal would do.
	Judge(context.Context, *Document) json.RawMessage
	// Unreadable hears of something that cannot be read.
	Unreadable(error)
}

// Follow tells a node's Follower of what there is, until ctx ends.
func (s Store) Follow(ctx context.Context, node string, f Follower) {
	const pause = 200 * time.Millisecond // of who cannot reach the state
	for ctx.Err() == nil {
		items, at, err := s.State.Get(ctx, s.Keys.Config())
		if err != nil {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		s.see(ctx, node, f, items)
		for b := range s.State.Watch(ctx, s.Keys.Config(), at) {
			if errors.Is(b.Err, cluster.ErrClosed) {
				return
			}
			var items []cluster.Item
			for _, e := range b.Events {
				if !e.Deleted {
					items = append(items, e.Item)
				}
			}
			s.see(ctx, node, f, items)
		}
	}
}

// see tells of the newest document and the proposal of what was read.
func (s Store) see(ctx context.Context, node string, f Follower, items []cluster.Item) {
	var newest, proposal *cluster.Item
	for _, i := range items {
		switch {
		case i.Key == s.Keys.Proposal():
			proposal = &i
		case strings.HasPrefix(i.Key, s.Keys.Documents()):
			newest = &i
		}
	}
	if newest != nil {
		if d, err := Decode(newest.Value); err != nil {
			f.Unreadable(err)
		} else {
			f.Follow(d)
		}
	}
	if proposal == nil {
		return
	}
	d, err := Decode(proposal.Value)
	if err != nil {
		f.Unreadable(err)
		return
	}
	s.answer(ctx, node, proposal.Lease, d.ID, f.Judge(ctx, d))
}

// answer stores what a node says, which ends with the proposal. If it cannot, the proposer
// goes on without it, and says so.
func (s Store) answer(ctx context.Context, node string, lease cluster.LeaseID, id string, body json.RawMessage) {
	value := verdictOf(id, body)
	_, _ = s.State.Commit(ctx, nil, []cluster.Change{{Key: s.Keys.Verdict(node), Value: value, Lease: lease}})
}
