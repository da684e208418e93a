package promise

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lunar/cluster"
	"lunar/scheduler/nodes"
)

// record is the value of Keys.Controller.
type record struct {
	Version int    `json:"version"`
	Node    string `json:"node"`
}

// stand has the node be the controller whenever there is none.
func (k *Keeper) stand(ctx context.Context) {
	for ctx.Err() == nil {
		lease, term, err := k.elect(ctx)
		if err != nil {
			pause(ctx, k.config.Lease/4)
			continue
		}
		k.do(ctx, func() { k.begin(term) })
		select {
		case <-lease.Done():
		case <-k.superseded:
		case <-ctx.Done():
		}
		k.do(ctx, k.resign)
		k.leave(lease)
	}
}

// begin makes the node the controller.
func (k *Keeper) begin(term cluster.Revision) {
	select {
	case <-k.superseded: // that was another time
	default:
	}
	c := k.config.Controller()
	c.Term = uint64(term)
	k.controller, k.asked, k.elected = nodes.NewController(c), false, k.now()
	k.config.Logger.Info("this node keeps the promise over all nodes", "node", k.config.Node, "term", term)
}

func (k *Keeper) resign() {
	k.controller = nil
	k.config.Logger.Info("this node does not keep the promise over all nodes any more", "node", k.config.Node)
}

// elect returns when the node has been elected, or has tried to be in vain.
func (k *Keeper) elect(ctx context.Context) (cluster.Lease, cluster.Revision, error) {
	if err := k.vacant(ctx); err != nil {
		return nil, 0, err
	}
	lease, err := k.config.State.Lease(ctx, k.config.Lease)
	if err != nil {
		return nil, 0, err
	}
	value, err := json.Marshal(record{1, k.config.Node})
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	key := k.config.Keys.Controller()
	term, err := k.config.State.Commit(ctx, []cluster.Condition{{Key: key}}, []cluster.Change{{Key: key, Value: value, Lease: lease.ID()}})
	if err != nil {
		k.leave(lease) // and the key with it, if it is there
		return nil, 0, err
	}
	return lease, term, nil
}

// vacant returns when there is no controller.
func (k *Keeper) vacant(ctx context.Context) error {
	key := k.config.Keys.Controller()
	items, at, err := k.config.State.Get(ctx, key)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return nil
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	for b := range k.config.State.Watch(watching, key, at) {
		if b.Err != nil {
			return b.Err
		}
		for _, e := range b.Events {
			if e.Deleted {
				return nil
			}
		}
	}
	return ctx.Err()
}

// leave ends a lease. If that fails it ends by itself.
func (k *Keeper) leave(lease cluster.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), k.config.Lease)
	defer cancel()
	if err := lease.Revoke(ctx); err != nil && !errors.Is(err, cluster.ErrClosed) {
		k.config.Logger.Debug("a lease could not be ended", "error", err)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
