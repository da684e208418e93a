package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/cluster"
	"lunar/cluster/ownership"
)

// leased is a key that a node has as long as it lives.
type leased struct {
	key   string
	ttl   time.Duration
	value func() []byte
	// may reports why a value that is there already must stay; nil: it may be replaced.
	may func(value []byte) error
	// before has to succeed before the key is stored; nil: nothing has to.
	before func(context.Context) error
	// holds hears, where decisions are made, of the lease that the key has; nil: of none.
	holds func(cluster.Lease)
}

func (n *Node) pulse(heard func()) leased {
	return leased{
		key: n.config.Keys.Pulse(n.config.Node), ttl: min(n.config.Suspect, n.config.Lease), value: func() []byte { return []byte(n.config.Incarnation) },
		may: func([]byte) error { return nil }, holds: func(l cluster.Lease) {
			if l != nil {
				heard()
			}
		},
	}
}

func (n *Node) record() leased {
	return leased{
		key: n.config.Keys.Node(n.config.Node), ttl: n.config.Lease,
		value: func() []byte { return n.self.Load().Encode() },
		may:   n.ours, before: n.config.Before, holds: func(l cluster.Lease) { n.lease = l },
	}
}

// ours reports why this process may not replace the record of its node: it is that of
// another process, which may serve cached reads until its lease is over.
func (n *Node) ours(value []byte) error {
	if r, err := ownership.ParseNode(value); err != nil || r.Incarnation != n.config.Incarnation {
		return fmt.Errorf("another process is, or was until a moment ago, the node %q of the cluster", n.config.Node)
	}
	return nil
}

// keep keeps a key until ctx ends, and then ends its lease.
func (n *Node) keep(ctx context.Context, k leased) {
	for ctx.Err() == nil {
		lease, err := n.enter(ctx, k)
		n.post(func() {
			n.all = true
			k.holds(lease)
			n.joined(k, err)
		})
		if err != nil {
			pause(ctx, k.ttl/renewals)
			continue
		}
		select {
		case <-lease.Done():
		case <-ctx.Done():
			n.lapse(k) // before others can see the lease end
			n.leave(lease)
		}
		n.lapse(k)
	}
}

// lapse has a key be held no more, and what follows from that done.
func (n *Node) lapse(k leased) {
	_ = n.do(func() { // or nobody decides any more
		k.holds(nil)
		n.all = true
		n.decide(time.Now())
	})
}

// joined notes why the node is alone, and logs it when that changes.
func (n *Node) joined(k leased, err error) {
	alone, why := "", ""
	if err != nil {
		alone, why = err.Error(), err.Error()
	}
	n.mute = errors.Is(err, cluster.ErrNoQuorum) || errors.Is(err, cluster.ErrUnknown)
	if errors.Is(err, cluster.ErrNoQuorum) {
		why = cluster.ErrNoQuorum.Error() // the rest is who was asked last
	}
	if k.key != n.config.Keys.Node(n.config.Node) {
		return
	}
	same := why == n.why
	if n.alone, n.why = alone, why; same {
		return
	}
	if err != nil {
		n.config.Logger.Warn("this node has no place in its cluster: it takes no volumes over, and reads pass its cache by", "error", err)
		return
	}
	n.config.Logger.Info("this node has its place in its cluster", "node", n.config.Node, "incarnation", n.config.Incarnation)
}

// enter begins a lease and stores the key with it.
func (n *Node) enter(ctx context.Context, k leased) (cluster.Lease, error) {
	if k.before != nil {
		if err := k.before(ctx); err != nil {
			return nil, err
		}
	}
	lease, err := n.config.State.Lease(ctx, k.ttl)
	if err != nil {
		return nil, err
	}
	if err = n.store(ctx, k, lease); err != nil {
		n.leave(lease)
		return nil, err
	}
	return lease, nil
}

func (n *Node) store(ctx context.Context, k leased, lease cluster.Lease) error {
	items, _, err := n.config.State.Get(ctx, k.key)
	if err != nil {
		return err
	}
	there := cluster.Condition{Key: k.key}
	for _, i := range items {
		if i.Key != k.key {
			continue // of a node whose name begins with this one's
		}
		if err := k.may(i.Value); err != nil {
			return err
		}
		there.Modified = i.Modified
	}
	_, err = n.config.State.Commit(ctx, []cluster.Condition{there}, []cluster.Change{{Key: k.key, Value: k.value(), Lease: lease.ID()}})
	return err
}

// leave ends a lease. If that fails it ends by itself.
func (n *Node) leave(lease cluster.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), n.config.Lease)
	defer cancel()
	if err := lease.Revoke(ctx); err != nil {
		n.config.Logger.Debug("a lease could not be ended", "error", err)
	}
}

// watch has the observer see what happens.
func (n *Node) watch(ctx context.Context) {
	for ctx.Err() == nil {
		items, at, err := n.config.State.Get(ctx, n.config.Keys.All())
		if err != nil {
			pause(ctx, n.config.Suspect/renewals)
			continue
		}
		n.post(func() {
			n.all = true
			n.warn(n.observer.Begin(items, at, time.Now()))
		})
		for b := range n.config.State.Watch(ctx, n.config.Keys.All(), at) {
			if errors.Is(b.Err, cluster.ErrClosed) {
				return
			}
			n.post(func() { n.see(b) })
		}
	}
}

func (n *Node) see(b cluster.Batch) {
	for _, e := range b.Events {
		name, err := n.observer.See(e, time.Now())
		n.warn(err)
		if v := n.volumes[name]; v != nil {
			v.news = true
		} else if name == "" {
			n.all = true
		}
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
