package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/hearing"
	"lunar/cluster/ownership"
)

// waiter waits for something to be so.
type waiter struct {
	is    func() (bool, error) // asked after each decision
	ended bool
	err   error
	done  chan struct{}
}

func (w *waiter) look() {
	if w.ended {
		return
	}
	if w.ended, w.err = w.is(); w.ended {
		close(w.done)
	}
}

// await returns when is has returned true, with the error that it had then.
func (n *Node) await(ctx context.Context, is func() (bool, error)) error {
	w := &waiter{is: is, done: make(chan struct{})}
	if err := n.do(func() { n.waiting[w] = struct{}{} }); err != nil {
		return err
	}
	defer n.post(func() { delete(n.waiting, w) })
	select {
	case <-w.done:
		return w.err
	case <-n.done:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Move has a volume's owner give it to another node, and waits until that one owns it. It
// fails if the owner can or will not: the other node does not live, or may not own it.
func (n *Node) Move(ctx context.Context, volume, to string) error {
	key := n.config.Keys.Move(volume)
	at, err := n.config.State.Commit(ctx, nil, []cluster.Change{{Key: key, Value: ownership.Request{To: to}.Encode()}})
	if err != nil {
		return fmt.Errorf("ask for a move of volume %q: %w", volume, err)
	}
	return n.await(ctx, func() (bool, error) {
		if n.observer.Revision() < at {
			return false, nil
		}
		r := n.observer.Owners()[volume]
		if r.Node == to && r.Standing == ownership.Owned {
			return true, nil
		}
		if n.observer.Asked(volume) || r.Standing != ownership.Owned {
			return false, nil
		}
		return true, fmt.Errorf("move volume %q: its owner %q has not given it to %q: %s", volume, r.Node, to, n.unfit(volume, to, r.Node))
	})
}

// unfit is why a node does not get volumes of an owner, as far as this one knows.
func (n *Node) unfit(volume, node, owner string) string {
	switch p, lives := n.observer.View.Nodes[node]; {
	case !lives:
		return "found that it does not live"
	case p.Draining:
		return fmt.Sprintf("found that it is drained (lunar cluster drain %s --off ends that)", node)
	case !p.Heard:
		return "found that it was not heard a moment ago"
	case p.Unable[volume] != "":
		return "found that it cannot open it: " + p.Unable[volume]
	}
	return fmt.Sprintf("expected it in owners as %q knows them: from its own file, or from the revision of the cluster's configuration that it goes by (lunar cluster status); if it is there, it has failed to open the volume (lunar cluster log on %[2]q), and may be asked again", owner, node)
}

// Drain has a node give all its volumes away and take none, now and later; Fill ends that.
// Drain waits until the node has none, or none that another node could have.
func (n *Node) Drain(ctx context.Context, node string) error {
	at, err := n.config.State.Commit(ctx, nil, []cluster.Change{{Key: n.config.Keys.Drain(node), Value: []byte("{}")}})
	if err != nil {
		return fmt.Errorf("drain node %q: %w", node, err)
	}
	err = n.await(ctx, func() (bool, error) {
		return n.observer.Revision() >= at && len(n.has(node)) == 0, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		_ = n.do(func() {
			err = fmt.Errorf("drain node %q: it still owns %v, expected another node of their owners that lives and is not drained; it stays drained until lunar cluster drain %s --off (%w)", node, n.has(node), node, err)
		})
	}
	return err
}

// Fill lets a node have volumes again that was drained.
func (n *Node) Fill(ctx context.Context, node string) error {
	key := n.config.Keys.Drain(node)
	items, _, err := n.config.State.Get(ctx, key)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(items, func(i cluster.Item) bool { return i.Key == key }) {
		return fmt.Errorf("found that node %q is not drained", node)
	}
	_, err = n.config.State.Commit(ctx, nil, []cluster.Change{{Key: key, Delete: true}})
	return err
}

// Forgets is ownership.Observer.Forget by what the node knows now.
func (n *Node) Forgets(volumes []string, revision int64) (forgotten []string, conditions []cluster.Condition, changes []cluster.Change) {
	_ = n.do(func() { forgotten, conditions, changes = n.observer.Forget(volumes, revision, time.Now()) }) // it stops
	return forgotten, conditions, changes
}

// has are the volumes of a node, without those of a process that is gone which nobody here could
// take over: they may be configured nowhere any more.
func (n *Node) has(node string) (all []string) {
	lives := n.observer.View.Nodes[node].Incarnation
	for volume, r := range n.observer.Owners() {
		if r.Node == node && r.Standing != ownership.Free && (r.Incarnation == lives || n.volumes[volume] != nil) {
			all = append(all, volume)
		}
	}
	slices.Sort(all)
	return all
}

// halt has the node give a volume away.
func (n *Node) halt(name string) {
	if v := n.volumes[name]; v != nil {
		v.machine.Stop()
		v.news = true
	}
}

// Remove has the node give a volume away and decide about it no more. None of the volume's
// methods is called any more when it returns; beyond ctx it waits for those alone that are
// under way, and for the volume to be closed.
func (n *Node) Remove(ctx context.Context, name string) error {
	err := n.do(func() { n.halt(name) })
	if err == nil {
		err = n.await(ctx, func() (bool, error) {
			v := n.volumes[name]
			return v == nil || v.machine.Idle(), nil
		})
	}
	if err != nil { // nobody else has it yet; what uses it here ends all the same
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*n.config.Hold)
		defer cancel()
		err = errors.Join(err, n.await(late, func() (bool, error) {
			v := n.volumes[name]
			return v == nil || v.machine.Closed(), nil
		}))
	}
	return errors.Join(err, n.do(func() {
		delete(n.volumes, name)
		delete(n.observer.Machines, name)
	}))
}

// Stop gives all volumes away as long as ctx lasts, and leaves the cluster.
func (n *Node) Stop(ctx context.Context) error {
	var names []string
	err := n.do(func() { names = slices.Sorted(maps.Keys(n.volumes)) })
	if err == nil {
		err = n.stop(ctx, names)
	}
	n.resign()
	n.leases.Wait()
	n.end()
	<-n.done
	n.rest.Wait()
	return err
}

func (n *Node) stop(ctx context.Context, names []string) error {
	for _, name := range names {
		_ = n.do(func() { n.halt(name) })
	}
	began := time.Now()
	err := n.await(ctx, func() (bool, error) {
		idle, closed := true, true
		for _, v := range n.volumes {
			idle, closed = idle && v.machine.Idle(), closed && v.machine.Closed()
		}
		if !idle && closed && time.Since(began) > n.config.Lease && n.deserted() {
			return true, errDeserted
		}
		return idle, nil
	})
	if err != nil {
		err = fmt.Errorf("give volumes to other nodes: %w", err)
	}
	return err
}

// errDeserted ends waiting for others to get what a node has closed.
var errDeserted = errors.New("etcd does not answer, so that no other node can be told")

// deserted reports that the state has not answered lately.
func (n *Node) deserted() bool { return n.lease == nil || time.Now().After(n.lease.Deadline()) }

// unanswered reports that the state did not answer when it was asked last.
func (n *Node) unanswered() bool {
	if n.lease == nil {
		return n.mute
	}
	return n.silent
}

// Status is what a node knows of its cluster.
type Status struct {
	Node        string
	Incarnation string
	Alone       string                  // why the node has no place in the cluster; empty: it has
	Until       time.Time               // cached reads are served until then, unless the lease is kept
	Answered    time.Time               // when the state has renewed the lease last; at first: when the node began
	Mute        bool                    // the state does not answer, or has no majority
	Said        map[string]hearing.Said // the last words of other nodes over links, also of those that do not live
	Nodes       map[string]NodeStatus
	Linked      map[string]ownership.Linked // other nodes that are heard over links, by whomever
	Drained     map[string]bool             // nodes that are to have no volumes, living or not
	Volumes     map[string]VolumeStatus
	Headers     map[string][]byte // of encrypted volumes, as the state has them
}

// NodeStatus is a living node.
type NodeStatus struct {
	ownership.Peer
	About json.RawMessage
}

// Hears reports whether a node is heard over links, by whomever.
func (s *Status) Hears(node string) bool { return time.Now().Before(s.Linked[node].Until) }

// VolumeStatus is a volume of the cluster.
type VolumeStatus struct {
	Owner ownership.Record
	State ownership.State // of this node's machine; empty: it has none
	// Failing: the node tries to open it, and could not (ownership.Machine.Failing).
	Failing bool
}

// Status returns what the node knows.
func (n *Node) Status() (s Status, err error) {
	err = n.do(func() {
		s = Status{Node: n.config.Node, Incarnation: n.config.Incarnation, Alone: n.alone, Answered: n.answered, Mute: n.unanswered(), Said: n.ears.All(), Linked: n.observer.View.Linked, Drained: n.observer.Drained(), Nodes: map[string]NodeStatus{}, Volumes: map[string]VolumeStatus{}}
		if n.observer.View.Current {
			s.Until = n.observer.View.Until
		}
		if s.Alone == "" && n.silent && n.lease != nil {
			s.Alone = "etcd does not answer, or has no majority (lunar-etcd on all nodes): the lease ended at " + n.lease.Deadline().UTC().Format(time.RFC3339)
		}
		s.Headers = n.observer.Headers()
		about := n.observer.About()
		for name, p := range n.observer.View.Nodes {
			s.Nodes[name] = NodeStatus{p, about[name]}
		}
		for name, r := range n.observer.Owners() {
			s.Volumes[name] = VolumeStatus{Owner: r}
		}
		for name, v := range n.volumes {
			s.Volumes[name] = VolumeStatus{s.Volumes[name].Owner, v.machine.State(), v.machine.Failing()}
		}
	})
	return s, err
}
