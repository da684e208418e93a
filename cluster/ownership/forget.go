package ownership

import (
	"maps"
	"math"
	"slices"
	"time"

	"lunar/cluster"
)

// mostForgotten is how many volumes Forget takes at once: so much a State takes.
const mostForgotten = 40

// Forget is what removes the owner's record, and what the owner has left, of those volumes, forgotten,
// that a revision of the cluster's configuration does not have. It leaves out those that somebody serves, or
// may be about to close, those that another node looks after, and those that were not of the cluster's
// configuration. The caller commits it as it is; no changes: there is nothing to be removed.
func (o *Observer) Forget(volumes []string, revision int64, now time.Time) (forgotten []string, conditions []cluster.Condition, changes []cluster.Change) {
	f, first := o.View.Forgotten, o.first()
	for _, volume := range volumes {
		t := o.told[volume]
		r := &t.record
		if t.owner.Modified == 0 || t.wrong != nil || r.Revision == 0 || r.Revision >= revision || o.Machines[volume] != nil || !o.over(r, first, now) {
			continue
		}
		// Nobody changes the other keys while the record is as it is.
		conditions = append(conditions, cluster.Condition{Key: o.keys.Owner(volume), Modified: t.owner.Modified})
		if r.Standing != Free && r.Node != o.node { // it has not come back
			conditions = append(conditions, cluster.Condition{Key: o.keys.Node(r.Node), Modified: o.View.Nodes[r.Node].Modified})
		}
		for _, key := range []string{o.keys.Owner(volume), o.keys.Heritage(volume), o.keys.Move(volume)} {
			changes = append(changes, cluster.Change{Key: key, Delete: true})
		}
		f.Epoch = max(f.Epoch, r.Epoch)
		f.leave(r.Image, r.Instances)
		if forgotten = append(forgotten, volume); len(forgotten) == mostForgotten {
			break
		}
	}
	if len(changes) == 0 || f.Revision == math.MaxInt64 {
		return nil, nil, nil
	}
	f.Revision = max(f.Revision, revision)
	return forgotten, append(conditions, o.View.unforgotten(o.keys)), append(changes, cluster.Change{Key: o.keys.Forgotten(), Value: f.Encode()})
}

// first reports whether this node is the first of those that live.
func (o *Observer) first() bool {
	nodes := slices.Sorted(maps.Keys(o.View.Nodes))
	return len(nodes) > 0 && nodes[0] == o.node
}

// over reports whether nobody serves what a record is of, nor is about to close it, and this node is
// the one to look after that. A process that lives does so for its own records, if it has given the
// volume up without being able to store that; for all others the first of the nodes does.
func (o *Observer) over(r *Record, first bool, now time.Time) bool {
	p, lives := o.View.Nodes[r.Node]
	lives = lives && p.Incarnation == r.Incarnation
	l := o.View.Linked[r.Node]
	switch {
	case r.Standing == Free:
		return first
	case lives:
		return r.Node == o.node
	}
	return first && (l.Incarnation != r.Incarnation || !now.Before(l.Until))
}
