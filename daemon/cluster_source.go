package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/cluster"
	"lunar/cluster/node"
	"lunar/control"
	"lunar/control/server"
)

// moveTime is how long a change of owners may take.
const moveTime = 30 * time.Second

// noCluster refuses what only nodes can do.
func noCluster() error {
	return &control.Refusal{What: "there is no cluster", Missing: true, Reasons: []control.Reason{{Text: "found no cluster in the configuration, expected the section cluster (docs/cluster.md)"}}}
}

// ClusterState implements server.Source.
func (s *source) ClusterState() (control.Cluster, error) {
	out := s.daemon.clusterState(s.daemon.config.Load())
	if out == nil {
		return control.Cluster{}, noCluster()
	}
	return *out, nil
}

// MoveInCluster implements server.Source.
func (s *source) MoveInCluster(by server.Asker, m control.ClusterMove) (control.Cluster, error) {
	v := s.daemon.config.Load().Volume(m.Volume)
	what := "volume " + m.Volume + " was not moved"
	switch {
	case v == nil || !v.Clustered():
		return control.Cluster{}, refused(what, fmt.Errorf("found no volume %q with owners, expected one of the configuration", m.Volume))
	case !v.OwnedBy(m.Node):
		return control.Cluster{}, refused(what, fmt.Errorf("found node %q, expected one of its owners: %v", m.Node, v.Owners))
	}
	return s.inCluster(by, what, "moved to node "+m.Node, func(ctx context.Context, n *node.Node) error { return n.Move(ctx, m.Volume, m.Node) })
}

// DrainInCluster implements server.Source.
func (s *source) DrainInCluster(by server.Asker, d control.ClusterDrain) (control.Cluster, error) {
	what := "node " + d.Node + " has not given its volumes away"
	if d.Off {
		what = "node " + d.Node + " is drained as before"
	}
	return s.inCluster(by, what, "drained", func(ctx context.Context, n *node.Node) error {
		if d.Off {
			return n.Fill(ctx, d.Node)
		}
		if err := s.isMember(n, d.Node); err != nil {
			return err
		}
		return n.Drain(ctx, d.Node)
	})
}

// isMember refuses a node of which nothing is known, such as a name that is misspelt.
func (s *source) isMember(n *node.Node, name string) error {
	st, err := n.Status()
	if err != nil {
		return err
	}
	if _, lives := st.Nodes[name]; lives {
		return nil
	}
	for i := range s.daemon.config.Load().Volumes {
		if s.daemon.config.Load().Volumes[i].OwnedBy(name) {
			return nil
		}
	}
	return fmt.Errorf("found node %q, which neither lives nor is named in owners, expected a node of lunar cluster status", name)
}

// FenceInCluster implements server.Source. A node that lives hears that it is to have no
// volumes; whatever it does, Ceph refuses its writes from then on.
func (s *source) FenceInCluster(by server.Asker, f control.ClusterFence) (control.Cluster, error) {
	what, fenced := "node "+f.Node+" was not fenced", false
	state, err := s.inCluster(by, what, "fenced", func(ctx context.Context, n *node.Node) error {
		st, err := n.Status()
		if err != nil {
			return err
		}
		if f.Node == st.Node {
			return errors.New("found the node that is asked, expected another one: lunar cluster drain gives away its own volumes")
		}
		if err := s.isMember(n, f.Node); err != nil {
			return err
		}
		var errs []error
		for name, v := range st.Volumes {
			if v.Owner.Node != f.Node || len(v.Owner.Instances) == 0 {
				continue
			}
			open := s.daemon.SharedOf(name)
			if open == nil {
				errs = append(errs, fmt.Errorf("volume %s: found it on node %s alone, expected it in the configuration of this one, which is to fence its owner", name, f.Node))
				continue
			}
			if err := open.Fence(ctx, v.Owner.Instances); err != nil {
				errs = append(errs, fmt.Errorf("volume %s: %w", name, err))
			}
		}
		fenced = len(errs) == 0
		return errors.Join(append(errs, n.Drain(ctx, f.Node))...)
	})
	if r := new(control.Refusal); fenced && errors.As(err, &r) {
		r.What = "node " + f.Node + " is fenced, but not all its volumes have another owner"
	}
	return state, err
}

// inCluster does what may take some time, and answers with what is so then.
func (s *source) inCluster(by server.Asker, what, waits string, do func(context.Context, *node.Node) error) (control.Cluster, error) {
	n := s.daemon.joined()
	if n == nil {
		return control.Cluster{}, noCluster()
	}
	ctx, cancel := context.WithTimeout(s.changes.life, moveTime)
	defer cancel()
	ended := awaits(by, "being "+waits)
	err := do(ctx, n)
	ended()
	switch {
	case errors.Is(err, cluster.ErrNoQuorum):
		return control.Cluster{}, &control.Refusal{What: what, State: true, Reasons: []control.Reason{{Text: err.Error()}}}
	case err != nil:
		return control.Cluster{}, refused(what, err)
	}
	return s.ClusterState()
}
