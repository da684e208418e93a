package ownership

import (
	"encoding/json"
	"fmt"
	"math"

	"lunar/cluster"
)

// Forgotten is the value of the key of that name (cluster.Keys.Forgotten): what has to be known of
// the owners' records that were removed, of whichever volumes. An image has a note of the epoch
// that it was open for last, and is not opened for an earlier one. A node that goes by an older
// configuration than those records may take another image for the volume.
type Forgotten struct {
	Version int `json:"version"`
	// Epoch is the highest that one of them had: new ones begin above it.
	Epoch uint64 `json:"epoch"`
	// Revision is that of the cluster's configuration which did not have the volume any more: a
	// node that knows a volume by an earlier one makes no new record.
	Revision int64 `json:"revision"`
}

// Encode returns a value as it is stored.
func (f Forgotten) Encode() []byte { f.Version = version; return encode(f) }

// parseForgotten reads what Encode writes. Of what cannot be read it says that no node is to make
// a new record of a volume of the cluster's configuration.
func parseForgotten(value []byte) (f Forgotten, err error) {
	if err = json.Unmarshal(value, &f); err == nil && f.Version != version {
		err = fmt.Errorf("found version %d, expected %d", f.Version, version)
	}
	if err != nil {
		return Forgotten{Revision: math.MaxInt64}, fmt.Errorf("what is known of records that were removed: %w", err)
	}
	return f, nil
}

// MostForgotten is how many volumes Forget takes at once: so much a State takes.
const MostForgotten = 40

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
		if len(conditions) == MostForgotten {
			break
		}
	}
	if len(changes) == 0 || f.Revision == math.MaxInt64 {
		return nil, nil
	}
	f.Revision = max(f.Revision, revision)
	return append(conditions, o.View.unforgotten(o.keys)), append(changes, cluster.Change{Key: o.keys.Forgotten(), Value: f.Encode()})
}

// unforgotten demands that no more records were removed since.
func (v *View) unforgotten(keys cluster.Keys) cluster.Condition {
	return cluster.Condition{Key: keys.Forgotten(), Modified: v.forgotten}
}

// outdated reports that this node may know the volume by a configuration that is older than what was
// removed: what it has for a new volume may be one that is gone, in another image.
func (m *Machine) outdated(v *View) bool {
	return m.modified == 0 && m.config.Revision != 0 && m.config.Revision < v.Forgotten.Revision
}
