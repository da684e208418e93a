package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/conf"
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

// clusterState is what this node knows; nil: it is none, or not yet.
func (d *daemon) clusterState(cfg *conf.Config) *control.Cluster {
	n := d.joined()
	if n == nil {
		return nil
	}
	s, err := n.Status()
	if err != nil {
		return nil // it has left
	}
	out := &control.Cluster{Name: cfg.Cluster.Named, Node: s.Node, Joined: s.Alone == "", Why: s.Alone, Nodes: []control.ClusterNode{}, Volumes: []control.ClusterVolume{}}
	if left := time.Until(s.Until); left > 0 {
		out.Lease = left.Seconds()
	}
	about := *d.member.known.Load()
	out.Revision, out.Behind = d.joint().revision(), d.member.whyBehind()
	for _, name := range nodesOf(&s, cfg) {
		out.Nodes = append(out.Nodes, nodeOf(name, &s, about[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		out.Volumes = append(out.Volumes, ownedOf(name, s.Volumes[name], cfg.Volume(name)))
	}
	out.Links = d.member.linksOf()
	return out
}

// linksOf are those to other nodes.
func (m *membership) linksOf() []control.ClusterLink {
	out := []control.ClusterLink{}
	if m.links == nil {
		return out
	}
	for _, l := range m.links.Status() {
		n := &l.Commands
		out = append(out, control.ClusterLink{
			Node: l.Node, Address: l.Address, Up: l.Up, Why: l.Why, RoundTrip: l.RoundTrip.Seconds(), Queued: l.Queued,
			Relayed: n.Sent, Relaying: n.Open, Unknown: n.Unknown, Served: n.Taken, Serving: n.Held,
		})
	}
	return out
}

// nodesOf are the nodes that live, and those that may own volumes.
func nodesOf(s *node.Status, cfg *conf.Config) []string {
	all := slices.Collect(maps.Keys(s.Nodes))
	for i := range cfg.Volumes {
		all = append(all, cfg.Volumes[i].Owners...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func nodeOf(name string, s *node.Status, about peer) control.ClusterNode {
	p, lives := s.Nodes[name]
	if !lives {
		return control.ClusterNode{Name: name, State: "away", Portals: []string{}, Volumes: ownedBy(s, name), Unable: []control.ClusterUnable{}}
	}
	out := control.ClusterNode{Name: name, State: "ok", Version: about.Lunar, Since: p.Since, Heard: p.Heard, Draining: p.Draining, Portals: []string{}, Volumes: ownedBy(s, name), Unable: []control.ClusterUnable{}}
	for _, volume := range slices.Sorted(maps.Keys(p.Unable)) {
		out.Unable = append(out.Unable, control.ClusterUnable{Volume: volume, Why: p.Unable[volume]})
	}
	if about.Config != nil {
		out.Revision, out.Behind = about.Config.Revision, about.Config.Behind
	}
	switch {
	case !p.Heard:
		out.State = "silent"
	case p.Draining:
		out.State = "drained"
	case out.Behind != "":
		out.State = "behind"
	}
	for _, g := range about.Groups {
		for _, a := range g.Addresses {
			out.Portals = append(out.Portals, fmt.Sprintf("%s,%d", a, g.Tag))
		}
	}
	return out
}

// ownedBy are the volumes that a node owns.
func ownedBy(s *node.Status, name string) []string {
	out := []string{}
	for volume, v := range s.Volumes {
		if v.Owner.Node == name && v.Owner.Standing == ownership.Owned {
			out = append(out, volume)
		}
	}
	slices.Sort(out)
	return out
}

func ownedOf(name string, v node.VolumeStatus, configured *conf.Volume) control.ClusterVolume {
	out := control.ClusterVolume{Name: name, Owner: v.Owner.Node, State: string(v.Owner.Standing), Epoch: v.Owner.Epoch, Here: string(v.State), Owners: []string{}, Size: v.Owner.Size}
	if out.State == "" {
		out.State = "none"
	}
	if configured != nil {
		out.Owners = append(out.Owners, configured.Owners...)
	}
	return out
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
