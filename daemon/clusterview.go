package daemon

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/cluster/promise"
	"lunar/conf"
	"lunar/control"
	"lunar/target/scsi"
)

// clusterView is what a node knows of its cluster at one moment.
type clusterView struct {
	node.Status
	now   time.Time
	cfg   *conf.Config
	known peers
	links map[string]link.Status // to other nodes; nil: there are none
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
	m := d.member
	v := &clusterView{Status: s, now: time.Now(), cfg: cfg, known: *m.known.Load(), links: m.linkStatus()}
	out := &control.Cluster{
		Name: cfg.Cluster.Named, Node: s.Node, Joined: s.Alone == "", Why: m.whyAlone(s.Alone, s.Mute), Lease: left(v.now, s.Until), Etcd: !s.Mute, Full: m.full.Load(), Answered: v.now.Sub(s.Answered).Seconds(),
		Revision: d.joint().revision(), Behind: m.whyBehind(), Nodes: []control.ClusterNode{}, Volumes: []control.ClusterVolume{},
	}
	out.Newest = max(out.Revision, v.newest())
	for _, name := range v.nodes() {
		out.Nodes = append(out.Nodes, v.nodeOf(name, out.Newest))
	}
	access := map[string][]control.ClusterAccess{}
	for _, name := range slices.Sorted(maps.Keys(s.Volumes)) {
		owner := s.Volumes[name].Owner.Node
		if access[owner] == nil {
			access[owner] = v.accessOf(owner)
		}
		out.Volumes = append(out.Volumes, v.volumeOf(name, access[owner]))
	}
	if m.keeper != nil {
		out.Promise = totalsOf(m.keeper.Seen(), v.now)
	}
	return out
}

// left is how many seconds there are until a time.
func left(now, until time.Time) float64 { return max(0, until.Sub(now).Seconds()) }

// linkStatus is how the other nodes are reached, by name; nil: there are no links.
func (m *membership) linkStatus() map[string]link.Status {
	if m.links == nil {
		return nil
	}
	all := map[string]link.Status{}
	for _, s := range m.links.Status() {
		all[s.Node] = s
	}
	return all
}

// newest is the newest revision of the cluster's configuration that a living node goes by.
func (v *clusterView) newest() (revision int64) {
	for _, p := range v.known {
		if p.Config != nil {
			revision = max(revision, p.Config.Revision)
		}
	}
	return revision
}

// nodes are those that live or are heard, and those that may own volumes.
func (v *clusterView) nodes() []string {
	all := append(slices.Collect(maps.Keys(v.Nodes)), v.Node)
	for name := range v.Linked {
		if v.Hears(name) {
			all = append(all, name)
		}
	}
	for i := range v.cfg.Volumes {
		all = append(all, v.cfg.Volumes[i].Owners...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (v *clusterView) nodeOf(name string, newest int64) control.ClusterNode {
	p, lives := v.Nodes[name]
	out := control.ClusterNode{
		Name: name, Incarnation: p.Incarnation, Since: p.Since, Heard: p.Heard, Draining: v.Drained[name], Link: v.linkOf(name), Lease: v.leaseOf(name),
		Hears: v.heardBy(name), Portals: []string{}, Volumes: v.ownedBy(name), Unable: []control.ClusterUnable{},
	}
	for _, volume := range slices.Sorted(maps.Keys(p.Unable)) {
		out.Unable = append(out.Unable, control.ClusterUnable{Volume: volume, Why: p.Unable[volume]})
	}
	if lives {
		about := v.known[name]
		out.Stranger = about.Stranger
		if out.Version = about.Lunar; about.Config != nil {
			out.Revision, out.Behind = about.Config.Revision, about.Config.Behind
		}
		for _, g := range about.Groups {
			for _, a := range g.Addresses {
				out.Portals = append(out.Portals, fmt.Sprintf("%s,%d", a, g.Tag))
			}
		}
		if !p.Heard {
			out.Silent = v.now.Sub(p.Unheard).Seconds()
		}
	}
	out.State = v.stateOf(&out, lives, newest)
	return out
}

// stateOf is a node's state.
func (v *clusterView) stateOf(n *control.ClusterNode, lives bool, newest int64) string {
	here := n.Name == v.Node
	linked := here || v.Hears(n.Name)
	switch {
	case (!n.Heard || here && v.Mute) && linked:
		return control.NodeCut
	case !lives:
		return control.NodeAway
	case !n.Heard:
		return control.NodeSilent
	case n.Draining:
		return control.NodeDrained
	case n.Behind != "" || n.Revision < newest:
		return control.NodeBehind
	}
	return control.NodeOK
}

// linkOf is how this node reaches another one.
func (v *clusterView) linkOf(name string) *control.ClusterLink {
	s, ok := v.links[name]
	if !ok {
		return nil
	}
	n := &s.Commands
	out := &control.ClusterLink{
		Address: s.Address, Up: s.Up, Why: s.Why, RoundTrip: s.RoundTrip.Seconds(), Queued: s.Queued,
		Relayed: n.Sent, Relaying: n.Open, Unknown: n.Unknown, Served: n.Taken, Serving: n.Held,
	}
	if !s.Heard.At.IsZero() {
		ago := v.now.Sub(s.Heard.At).Seconds()
		out.Heard = &ago
	}
	return out
}

// leaseOf is a node's lease; nil: it is not known.
func (v *clusterView) leaseOf(name string) *control.ClusterLease {
	if name == v.Node {
		return &control.ClusterLease{Age: v.now.Sub(v.Answered).Seconds(), Left: left(v.now, v.Until)}
	}
	said := v.Said[name]
	if said.At.IsZero() || said.Lease == 0 && said.Renewed == 0 {
		return nil
	}
	ago := v.now.Sub(said.At)
	return &control.ClusterLease{Age: (said.Renewed + ago).Seconds(), Left: max(0, said.Lease-ago).Seconds()}
}

// heardBy are the nodes that one hears over links.
func (v *clusterView) heardBy(name string) []string {
	out := []string{}
	if name == v.Node {
		for other, said := range v.Said {
			if !said.At.IsZero() {
				out = append(out, other)
			}
		}
	} else if said := v.Said[name]; !said.At.IsZero() {
		out = slices.AppendSeq(out, maps.Keys(said.Hears))
	}
	slices.Sort(out)
	return out
}

// ownedBy are the volumes that a node owns.
func (v *clusterView) ownedBy(name string) []string {
	out := []string{}
	for volume, s := range v.Volumes {
		if s.Owner.Node == name && s.Owner.Standing == ownership.Owned {
			out = append(out, volume)
		}
	}
	slices.Sort(out)
	return out
}

func (v *clusterView) volumeOf(name string, access []control.ClusterAccess) control.ClusterVolume {
	s := v.Volumes[name]
	out := control.ClusterVolume{
		Name: name, Owner: s.Owner.Node, State: string(s.Owner.Standing), Since: s.Owner.Since, Epoch: s.Owner.Epoch, InFlux: v.inFlux(&s), Here: string(s.State),
		Owners: []string{}, Unable: []string{}, Access: access, Size: s.Owner.Size,
	}
	if out.State == "" {
		out.State = "none"
	}
	if configured := v.cfg.Volume(name); configured != nil {
		out.Owners = append(out.Owners, configured.Owners...)
	}
	for _, node := range out.Owners {
		if v.Nodes[node].Unable[name] != "" {
			out.Unable = append(out.Unable, node)
		}
	}
	return out
}

// inFlux reports whether it is not decided who serves a volume that is configured here.
func (v *clusterView) inFlux(s *node.VolumeStatus) bool {
	switch s.State {
	case "":
		return false
	case ownership.Suspecting, ownership.Fencing, ownership.Opening, ownership.Draining:
		return true
	}
	lives := v.Nodes[s.Owner.Node].Incarnation == s.Owner.Incarnation || v.Hears(s.Owner.Node)
	return s.Owner.Standing != ownership.Owned || !lives
}

// accessOf is what hosts are told of each node's paths to the volumes of an owner.
func (v *clusterView) accessOf(owner string) []control.ClusterAccess {
	out, by := []control.ClusterAccess{}, v.known.access(owner)
	for _, name := range slices.Sorted(maps.Keys(v.known)) {
		best, any := scsi.AccessState(0), false
		for _, g := range v.known[name].Groups {
			if state := by[g.Tag].State; !any || state < best {
				best, any = state, true
			}
		}
		if any {
			out = append(out, control.ClusterAccess{Node: name, State: best.String()})
		}
	}
	return out
}

// totalsOf are the promises over all nodes; nil: nothing was heard of them lately.
func totalsOf(s *promise.Seen, now time.Time) *control.ClusterPromiseTotals {
	if s == nil {
		return nil
	}
	out := &control.ClusterPromiseTotals{
		Controller: s.Controller, Term: s.Term, Elected: (time.Duration(s.Age) + now.Sub(s.At)).Seconds(), Promises: s.Entities, Reserved: s.Reserved, Limit: s.Limit,
		Served: s.Served, Missed: s.Missed, Nodes: []control.ClusterNodeTotals{}, Silent: nonNil(s.Silent),
	}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, control.ClusterNodeTotals{Node: n.Node, Reserved: n.Reserved, Served: n.Served, Capacity: n.Capacity})
	}
	return out
}
