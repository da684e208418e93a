package ownership

import (
	"slices"
	"time"
)

// vacancy is whether a volume has an owner, or why it has none.
type vacancy uint8

const (
	occupied  vacancy = iota
	unheard           // its owner may be dead; with a cache it keeps the volume until its lease is over
	unclaimed         // nobody ever had it
	released          // its last owner has closed it
	gone              // its owner's lease is over
)

// vacant reports whether somebody other than this process owns the volume.
func (m *Machine) vacant(v *View, now time.Time) vacancy {
	p, lives := v.Nodes[m.record.Node]
	switch {
	case m.modified == 0:
		return unclaimed
	case m.record.Standing == Free:
		return released
	case now.Before(m.linked(v)):
		return occupied
	case !lives || p.Incarnation != m.record.Incarnation:
		return gone
	case !p.Heard && m.record.Node != m.config.Node:
		return unheard
	}
	return occupied
}

// linked is until when another owner is known to serve the volume by what it says itself, whatever
// the state says of its node; zero: it is not.
func (m *Machine) linked(v *View) (until time.Time) {
	l := v.Linked[m.record.Node]
	if m.record.Standing == Owned && m.record.Node != m.config.Node && l.Incarnation == m.record.Incarnation && !slices.Contains(l.Without, m.config.Volume) && !m.powerless(v) {
		until = l.Until
	}
	return until
}

// powerless reports whether the owner says that Ceph does not answer it for the volume, and Ceph
// answers this node: by itself it would give the volume away, if it reached the state.
func (m *Machine) powerless(v *View) bool {
	return m.config.Mute > 0 && m.record.Node != m.config.Node && m.unanswered(v, m.record.Node) && !m.unanswered(v, m.config.Node)
}

// watch notes since when the volume has had no owner.
func (m *Machine) watch(v *View, now time.Time) {
	if c := (cause{m.modified, m.vacant(v, now)}); c != m.cause {
		m.cause, m.since = c, now
	}
}

// due is when this node may claim the volume; zero: never, as it is.
func (m *Machine) due(v *View) (at time.Time) {
	all := m.candidates(v, m.record.Failed)
	rank := slices.Index(all, m.config.Node)
	switch {
	case m.cause.what == occupied || rank < 0 || m.outside(v, at) || m.config.stale(&m.record) || m.outdated(v):
		return at
	case m.cause.what == unheard && m.record.Standing == Owned && m.record.Cached:
		return at
	case m.cause.what == released && m.record.Next == m.config.Node:
		return m.since
	}
	later := m.rung(v, m.config.Node, m.record.Failed) - m.rung(v, all[0], m.record.Failed)
	if m.cause.what == released && m.record.Next != "" && slices.Contains(all, m.record.Next) {
		later++
	}
	at = m.since.Add(time.Duration(rank)*m.config.Stagger + time.Duration(later)*m.config.Patience)
	if m.cause.what != released && m.powerless(v) {
		at = at.Add(m.config.Mute) // it is heard, and Ceph may be about to answer it
	}
	return at
}

// outdated reports that this node may know the volume by a configuration that is older than what was
// removed: what it has for a new volume may be one that is gone, in another image.
func (m *Machine) outdated(v *View) bool {
	return m.modified == 0 && m.config.Revision != 0 && m.config.Revision < v.Forgotten.Revision
}

func (m *Machine) claimable(v *View, now time.Time) bool {
	at := m.due(v)
	return !at.IsZero() && !now.Before(at)
}

func (m *Machine) suspects(v *View, _ time.Time) bool {
	return m.cause.what == gone || m.cause.what == unheard
}

// rung orders candidates before their names do.
type rung int

const (
	good  rung = iota
	tried      // it has failed to open the volume, or Ceph does not answer it
	full       // it is to have no volumes
)

func (m *Machine) rung(v *View, node string, failed []string) rung {
	p := v.Nodes[node]
	switch {
	case p.Draining:
		return full
	case slices.Contains(failed, p.Incarnation), m.unanswered(v, node):
		return tried
	}
	return good
}

// unanswered reports whether a node says that Ceph does not answer it for the volume.
func (m *Machine) unanswered(v *View, node string) bool {
	if node == m.config.Node {
		return !m.silent.IsZero()
	}
	l := v.Linked[node]
	same := l.Incarnation == v.Nodes[node].Incarnation || node == m.record.Node && l.Incarnation == m.record.Incarnation
	return m.store != "" && same && slices.Contains(l.Silent, m.store)
}

// answered is the best node that says that Ceph answers it for the volume, and that may have it;
// empty: there is none.
func (m *Machine) answered(v *View, now time.Time) string {
	for _, name := range m.others(v, m.record.Failed) {
		if l := v.Linked[name]; now.Before(l.Until) && l.Incarnation == v.Nodes[name].Incarnation && slices.Contains(l.Stores, m.store) {
			return name
		}
	}
	return ""
}

// candidates are the nodes that could own the volume now, the best first.
func (m *Machine) candidates(v *View, failed []string) (all []string) {
	for _, name := range m.config.Owners {
		if p, lives := v.Nodes[name]; lives && p.Heard && p.Unable[m.config.Volume] == "" {
			all = append(all, name)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return int(m.rung(v, a, failed) - m.rung(v, b, failed)) })
	return all
}

// others are the candidates to which this node may give the volume.
func (m *Machine) others(v *View, failed []string) []string {
	return slices.DeleteFunc(m.candidates(v, failed), func(n string) bool { return n == m.config.Node || v.Nodes[n].Draining })
}

// heir is the node that is to have the volume instead of this one, its owner; empty: none.
func (m *Machine) heir(v *View, now time.Time) string {
	at := m.failback(v)
	if m.request != nil || v.Nodes[m.config.Node].Draining || !at.IsZero() && !now.Before(at) {
		return m.chosen(v, m.record.Failed)
	}
	return ""
}

// chosen is the node that this one would give the volume to; empty: there is none.
func (m *Machine) chosen(v *View, failed []string) string {
	others := m.others(v, failed)
	switch {
	case m.request != nil && slices.Contains(others, m.request.To):
		return m.request.To
	case m.request != nil && m.open() && !m.stopping && !v.Nodes[m.config.Node].Draining:
		return "" // it asks for what cannot be
	case len(others) > 0:
		return others[0]
	}
	return ""
}

// failback is when a better node has lived for long enough; zero: never, as it is.
func (m *Machine) failback(v *View) (at time.Time) {
	all := m.candidates(v, m.record.Failed)
	if m.config.Failback > 0 && m.open() && slices.Index(all, m.config.Node) > 0 && m.rung(v, all[0], m.record.Failed) == good {
		at = v.Nodes[all[0]].Since.Add(m.config.Failback)
	}
	return at
}
