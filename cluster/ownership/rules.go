package ownership

import (
	"slices"
	"time"

	"lunar/cluster"
)

// rule says what a machine does while something holds, and the state that this is. One
// without do waits.
type rule struct {
	state State
	quick bool // it does not wait for the pause after a failure of Ceph
	when  func(*Machine, *View, time.Time) bool
	do    func(*Machine, *View) Action
}

// rules are asked in order, and the first that holds is followed.
var rules = []rule{
	// What is open, and should not be.
	{Draining, true, (*Machine).superseded, (*Machine).close},
	{Draining, true, (*Machine).mute, (*Machine).yield},
	{Draining, true, (*Machine).wavers, (*Machine).amend},
	{Draining, true, (*Machine).toLeave, (*Machine).leave},
	{Draining, true, (*Machine).parting, (*Machine).free},
	// The way from a claim to a volume that is served.
	{Fencing, false, (*Machine).unfenced, (*Machine).fence},
	{Opening, false, (*Machine).openable, (*Machine).openIt},
	{Opening, true, (*Machine).confirmable, (*Machine).confirm},
	// An owner.
	{Owner, true, (*Machine).differs, (*Machine).amend},
	{Owner, true, (*Machine).idleRequest, (*Machine).answer},
	{Owner, true, (*Machine).serves, nil},
	// What needs a place in the cluster.
	{Follower, true, (*Machine).outside, nil},
	{Follower, false, (*Machine).unconnected, (*Machine).connect},
	{Opening, false, (*Machine).mineAgain, (*Machine).claim},
	{Suspecting, false, (*Machine).claimable, (*Machine).claim},
	{Suspecting, true, (*Machine).suspects, nil},
	{Follower, true, func(*Machine, *View, time.Time) bool { return true }, nil},
}

func (m *Machine) rule(v *View, now time.Time) *rule {
	m.watch(v, now)
	i := slices.IndexFunc(rules, func(r rule) bool { return r.when(m, v, now) })
	return &rules[i]
}

func (m *Machine) superseded(*View, time.Time) bool { return m.disk != nil && !m.open() }

func (m *Machine) close(*View) Action { return Action{Kind: Close, Epoch: m.epoch} }

// mute: Ceph does not answer this node, and answers another one that may have the volume. Where it
// answers nobody, nothing moves.
func (m *Machine) mute(v *View, now time.Time) bool {
	if m.silent.IsZero() || m.config.Mute == 0 || !m.open() || m.record.Standing != Owned || !v.Current || !now.Before(v.Until) {
		return false
	}
	m.refuge = m.answered(v, now)
	return m.refuge != "" && now.Sub(m.silent) >= m.config.Mute && now.Sub(m.opened) >= 6*m.config.Mute
}

// yield gives the volume away without closing it, for which Ceph would have to answer: whoever is
// next fences this node's instance.
func (m *Machine) yield(*View) Action {
	m.leaving = true
	r := m.record
	r.Standing, r.Cached, r.Next = Free, false, m.refuge
	return m.commit(r)
}

// wavers: this node has given the volume away without closing it, and does not see whether that is
// so. Another change of the record tells.
func (m *Machine) wavers(*View, time.Time) bool {
	return m.leaving && m.open() && m.record.Standing == Owned
}

func (m *Machine) toLeave(v *View, now time.Time) bool {
	return m.open() && m.record.Standing == Owned && (m.stopping || m.heir(v, now) != "")
}

func (m *Machine) leave(v *View) Action {
	m.leaving = true
	return m.close(v)
}

func (m *Machine) claiming() bool { return m.mine() && m.record.Standing == Claiming }

func (m *Machine) confirmable(*View, time.Time) bool { return m.claiming() && m.open() }

// confirm tells that earlier instances are gone, and that this node serves.
func (m *Machine) confirm(*View) Action {
	r := m.described()
	r.Standing, r.Instances, r.Failed = Owned, []string{m.disk.Address}, without(r.Failed, m.config.Incarnation)
	return m.commit(r)
}

// described is the record with what is open.
func (m *Machine) described() Record {
	r := m.record
	r.Cached, r.Size, r.BlockSize = m.config.Cached, m.disk.Size, m.disk.BlockSize
	m.identify(&r)
	return r
}

// identify has a record say which disk the volume is, and by which revision: later ones alone may
// have another.
func (m *Machine) identify(r *Record) {
	r.Image, r.Revision = m.config.Image, max(m.config.Revision, r.Revision)
}

// parting: this node has closed the volume for another one, or could not open it and
// another one may, or stops.
func (m *Machine) parting(v *View, _ time.Time) bool {
	failed := m.failed == m.record.Epoch && len(m.others(v, nil)) > 0
	return m.mine() && m.disk == nil && (m.leaving || m.stopping || failed)
}

// free leaves the volume to others. Whom this node has not fenced they have to, and
// itself, if it may still be opening the volume.
func (m *Machine) free(v *View) Action {
	r := m.record
	if m.failed == r.Epoch {
		r.Failed = m.remembered(v)
	}
	r.Instances = m.left()
	r.Standing, r.Cached, r.Next = Free, false, m.chosen(v, r.Failed)
	r.Revision = max(m.config.Revision, r.Revision)
	return m.commit(r)
}

// left are the instances that may have the volume open still, as far as this node's claim
// goes.
func (m *Machine) left() (all []string) {
	if m.fenced != m.record.Epoch {
		all = m.predecessors()
	}
	if m.late {
		all = append(all, m.record.claimed())
	}
	return all
}

// remembered are the living incarnations that could not open the volume, with this one.
func (m *Machine) remembered(v *View) []string {
	all := []string{m.config.Incarnation}
	for _, p := range v.Nodes {
		if p.Incarnation != m.config.Incarnation && slices.Contains(m.record.Failed, p.Incarnation) {
			all = append(all, p.Incarnation)
		}
	}
	slices.Sort(all)
	return all
}

// predecessors are the instances that this node has to fence.
func (m *Machine) predecessors() []string {
	return without(m.record.Instances, m.record.claimed())
}

func (m *Machine) unfenced(v *View, now time.Time) bool {
	return m.claiming() && m.openable(v, now) && m.fenced != m.record.Epoch && len(m.predecessors()) > 0
}

func (m *Machine) fence(*View) Action {
	return Action{Kind: Fence, Epoch: m.record.Epoch, Instances: m.predecessors()}
}

// openable: the record names the instance that this node has, which nobody has refused.
func (m *Machine) openable(*View, time.Time) bool {
	return m.mine() && m.disk == nil && !m.leaving && m.address != "" && m.address == m.record.claimed()
}

func (m *Machine) openIt(*View) Action {
	m.lost = false
	return Action{Kind: Open, Epoch: m.record.Epoch, Instances: m.predecessors(), Record: m.record}
}

func (m *Machine) serves(*View, time.Time) bool { return m.open() }

func (m *Machine) differs(*View, time.Time) bool {
	if !m.open() {
		return false
	}
	r, now := m.described(), &m.record
	fresh := now.Revision == 0 && r.Revision != 0 // the volume has become one of the cluster's configuration
	return fresh || r.Cached != now.Cached || r.Size != now.Size || r.BlockSize != now.BlockSize
}

func (m *Machine) amend(*View) Action { return m.commit(m.described()) }

// idleRequest: a move is asked for that cannot be made, or is made.
func (m *Machine) idleRequest(*View, time.Time) bool { return m.open() && m.request != nil }

func (m *Machine) answer(*View) Action { return m.commit(m.record) }

func (m *Machine) outside(v *View, _ time.Time) bool {
	return !m.known || !v.Current || m.stopping
}

// unconnected: this node has no instance for the volume, or one that somebody who has claimed
// the volume since is about to fence, if not sooner then later.
func (m *Machine) unconnected(v *View, _ time.Time) bool {
	return (m.address == "" || !m.mine() && slices.Contains(m.earlier(v), m.address)) && slices.Contains(m.config.Owners, m.config.Node)
}

func (m *Machine) connect(v *View) Action { return Action{Kind: Connect, Instances: m.earlier(v)} }

// earlier are the instances that the next owner has to fence. An own one that has nothing of
// the volume open is none of them: this node's other volumes live by it.
func (m *Machine) earlier(v *View) []string {
	switch {
	case m.modified == 0:
		return v.Forgotten.of(m.config.Image)
	case m.mine():
		return m.left()
	}
	return m.record.Instances
}

// mineAgain: the record names this process, by an instance that it has no more.
func (m *Machine) mineAgain(*View, time.Time) bool { return m.mine() }

// claim makes this node the owner. The conditions say that nobody else has changed the
// record, that an owner whose lease is over has not come back: it may trust its cache again,
// and of a new record that no more were removed. What those have left of the image is the new one's
// to fence.
func (m *Machine) claim(v *View) Action {
	r := m.record
	if m.modified == 0 {
		r.Epoch = v.Forgotten.Epoch
	}
	r.Node, r.Incarnation, r.Epoch, r.Standing, r.Next = m.config.Node, m.config.Incarnation, r.Epoch+1, Claiming, ""
	r.Since = m.now.UTC().Round(time.Millisecond)
	r.Instances = append(without(m.earlier(v), m.address), m.address)
	m.identify(&r) // it is served before that is confirmed
	if m.config.BlockSize != 0 {
		r.BlockSize = m.config.BlockSize
	}
	a := m.commit(r)
	if m.modified == 0 {
		a.Conditions = append(a.Conditions, v.unforgotten(m.config.Keys))
		if f := v.Forgotten; f.of(m.config.Image) != nil {
			f.Left = f.without(m.config.Image)
			a.Changes = append(a.Changes, cluster.Change{Key: m.config.Keys.Forgotten(), Value: f.Encode()})
		}
	}
	if m.cause.what == gone {
		a.Conditions = append(a.Conditions, cluster.Condition{Key: m.config.Keys.Node(m.record.Node), Modified: v.Nodes[m.record.Node].Modified})
	}
	return a
}

// commit stores the record if nobody else has, and ends a request of a move with it.
func (m *Machine) commit(r Record) Action {
	owner := m.config.Keys.Owner(m.config.Volume)
	a := Action{
		Kind: Commit, Epoch: r.Epoch, Record: r,
		Conditions: []cluster.Condition{{Key: owner, Modified: m.modified}},
		Changes:    []cluster.Change{{Key: owner, Value: r.Encode()}},
	}
	if m.request != nil && r.Standing != Claiming {
		move := m.config.Keys.Move(m.config.Volume)
		a.Conditions = append(a.Conditions, cluster.Condition{Key: move, Modified: m.asked})
		a.Changes = append(a.Changes, cluster.Change{Key: move, Delete: true})
	}
	return a
}
