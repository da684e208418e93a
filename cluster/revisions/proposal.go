package revisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lunar/cluster"
)

// proposalTime is after how long without its proposer a proposal ends.
const proposalTime = 5 * time.Second

// ErrBusy: another proposal is under way.
var ErrBusy = errors.New("another change of the cluster's configuration is under way")

// Proposal is a document that all nodes are asked about.
type Proposal struct {
	*Document
	store Store
	lease cluster.Lease
	value []byte
	at    cluster.Revision  // of the proposal's key
	keys  []string          // of the revisions that there are, ascending
	after cluster.Condition // what Commit demands of the last revision
}

// Propose asks all nodes about a document, whose revision it sets: one above the newest, which is
// the last of the state, or that which the caller knows of a state that was restored from an older
// backup. If expected is not 0, the newest one has to be that. It fails with ErrBusy, ErrTooLong,
// cluster.ErrConflict and the errors of the state.
func (s Store) Propose(ctx context.Context, d *Document, known, expected int64) (*Proposal, error) {
	items, _, err := s.State.Get(ctx, s.Keys.Documents())
	if err != nil {
		return nil, err
	}
	p := &Proposal{Document: d, store: s}
	last := int64(0)
	for _, i := range items {
		p.keys = append(p.keys, i.Key)
		p.after = cluster.Condition{Key: i.Key, Modified: i.Modified}
		if _, err := fmt.Sscanf(i.Key[len(s.Keys.Documents()):], "%d", &last); err != nil {
			return nil, fmt.Errorf("found the key %s, expected a revision", i.Key)
		}
	}
	newest := max(last, known)
	if expected != 0 && expected != newest {
		return nil, Stale(newest, expected)
	}
	d.Revision = newest + 1
	if p.value, err = d.Encode(); err != nil {
		return nil, err
	}
	if p.lease, err = s.State.Lease(ctx, proposalTime); err != nil {
		return nil, err
	}
	p.at, err = s.State.Commit(ctx, []cluster.Condition{{Key: s.Keys.Proposal()}}, []cluster.Change{{Key: s.Keys.Proposal(), Value: p.value, Lease: p.lease.ID()}})
	if errors.Is(err, cluster.ErrConflict) {
		err = s.busy(ctx)
	}
	if err != nil {
		p.End()
		return nil, err
	}
	return p, nil
}

// Stale is the error of a change that means another revision than the newest. It wraps
// cluster.ErrConflict.
func Stale(newest, expected int64) error {
	return fmt.Errorf("%w: found revision %d as the newest, expected %d", cluster.ErrConflict, newest, expected)
}

// busy says whose proposal is under way.
func (s Store) busy(ctx context.Context) error {
	items, _, err := s.State.Get(ctx, s.Keys.Proposal())
	if err == nil && len(items) == 1 {
		if d, err := Decode(items[0].Value); err == nil {
			return fmt.Errorf("%w: %s asked node %s for %q", ErrBusy, d.By, d.Node, d.What)
		}
	}
	return ErrBusy
}

// Verdicts waits until all nodes that wanted names have said what they say, or ctx ends, and
// returns that by node. It fails with ErrTooLong for what the state did not take of one.
func (p *Proposal) Verdicts(ctx context.Context, wanted func() []string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		items, _, err := p.store.State.Get(ctx, p.store.Keys.Verdicts())
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		for _, i := range items {
			node, ok := p.store.Keys.VerdictOf(i.Key)
			if !ok || out[node] != nil {
				continue
			}
			if out[node], err = p.said(i.Value); err != nil {
				return nil, fmt.Errorf("node %s: %w", node, err)
			}
		}
		if !slices.ContainsFunc(wanted(), func(node string) bool { return out[node] == nil }) {
			return out, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return out, nil
		}
	}
}

// Commit makes the document the newest revision. It fails with cluster.ErrConflict if the
// proposal has ended, or another revision has come.
func (p *Proposal) Commit(ctx context.Context) error {
	keys := p.store.Keys
	conditions := []cluster.Condition{{Key: keys.Proposal(), Modified: p.at}, {Key: keys.Document(p.Revision)}}
	if p.after.Key != "" {
		conditions = append(conditions, p.after)
	}
	changes := []cluster.Change{{Key: keys.Document(p.Revision), Value: p.value}, {Key: keys.Proposal(), Delete: true}}
	for i := 0; i < len(p.keys)+1-kept; i++ {
		changes = append(changes, cluster.Change{Key: p.keys[i], Delete: true})
	}
	_, err := p.store.State.Commit(ctx, conditions, changes)
	if errors.Is(err, cluster.ErrUnknown) {
		return p.unknown(ctx)
	}
	return err
}

// unknown finds out whether the document was written: while the proposal is there it was not.
func (p *Proposal) unknown(ctx context.Context) error {
	for ctx.Err() == nil {
		items, _, err := p.store.State.Get(ctx, p.store.Keys.Config())
		open := false
		for _, i := range items {
			switch d, bad := Decode(i.Value); {
			case i.Key == p.store.Keys.Document(p.Revision) && bad == nil && d.ID == p.ID:
				return nil
			case i.Key == p.store.Keys.Proposal() && i.Modified == p.at:
				open = true
			}
		}
		if err == nil && !open {
			return fmt.Errorf("%w: the proposal has ended", cluster.ErrConflict)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return cluster.ErrUnknown
}

// End ends the proposal, and what was said to it. If that fails it ends by itself.
func (p *Proposal) End() {
	ctx, cancel := context.WithTimeout(context.Background(), proposalTime)
	defer cancel()
	_ = p.lease.Revoke(ctx)
}
