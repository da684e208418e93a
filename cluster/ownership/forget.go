package ownership

import (
	"math"

	"lunar/cluster"
)

// mostForgotten is how many volumes Forget takes at once: so much a State takes.
const mostForgotten = 40

// Forget is what removes the owner's record, and what the owner has left, of volumes that a
// revision of the cluster's configuration does not have. It leaves out those that somebody owns or
// may have open still, and those that were not of the cluster's configuration. The caller commits
// it as it is; no changes: there is nothing to be removed.
func (o *Observer) Forget(volumes []string, revision int64) (conditions []cluster.Condition, changes []cluster.Change) {
	f := o.View.Forgotten
	for _, volume := range volumes {
		t := o.told[volume]
		r := &t.record
		if t.owner.Modified == 0 || t.wrong != nil || r.Standing != Free || len(r.Instances) > 0 || r.Revision == 0 || r.Revision >= revision {
			continue
		}
		// Nobody changes the other keys while the record is as it is.
		conditions = append(conditions, cluster.Condition{Key: o.keys.Owner(volume), Modified: t.owner.Modified})
		for _, key := range []string{o.keys.Owner(volume), o.keys.Heritage(volume), o.keys.Move(volume)} {
			changes = append(changes, cluster.Change{Key: key, Delete: true})
		}
		f.Epoch = max(f.Epoch, r.Epoch)
		if len(conditions) == mostForgotten {
			break
		}
	}
	if len(changes) == 0 || f.Revision == math.MaxInt64 {
		return nil, nil
	}
	f.Revision = max(f.Revision, revision)
	return append(conditions, o.View.unforgotten(o.keys)), append(changes, cluster.Change{Key: o.keys.Forgotten(), Value: f.Encode()})
}
