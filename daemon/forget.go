package daemon

import (
	"context"
	"maps"
	"slices"
	"time"

	"lunar/cluster/node"
)

// forgetTime is how long a volume has to be gone from the cluster's configuration until the state
// forgets it: who has taken it out by mistake finds its reservations again. Tests shorten it.
var forgetTime = time.Hour

// forgetting is since when volumes are gone, as far as this process knows; followPeers' alone.
type forgetting map[string]time.Time

// due are those of the volumes that are gone that were so for long enough.
func (f *forgetting) due(now time.Time, gone []string) (all []string) {
	since := forgetting{}
	for _, volume := range gone {
		at, known := (*f)[volume]
		if !known {
			at = now
		}
		if since[volume] = at; now.Sub(at) >= forgetTime {
			all = append(all, volume)
		}
	}
	*f = since
	return all
}

// gone are volumes of which the state knows an owner, and that no node has any more by a revision
// of the cluster's configuration. It is not known unless all nodes that are heard go by that one.
func gone(s *node.Status, living peers, revision int64) (all []string, known bool) {
	nodes := slices.Sorted(maps.Keys(s.Nodes))
	if revision == 0 || len(nodes) == 0 {
		return nil, false
	}
	for name := range s.Linked {
		if _, lives := s.Nodes[name]; !lives && s.Hears(name) {
			return nil, false // it is cut off from etcd, and may serve
		}
	}
	configured := map[string]bool{}
	for _, name := range nodes {
		p, told := living[name]
		if !told || !p.Forgets || p.Config == nil || p.Config.Revision != revision {
			return nil, false
		}
		for volume := range p.Owners {
			configured[volume] = true
		}
	}
	for volume, v := range s.Volumes {
		if !configured[volume] && v.State == "" && v.Owner.Revision > 0 {
			all = append(all, volume)
		}
	}
	slices.Sort(all)
	return all, true
}

// forget has the state forget volumes that are gone from the cluster's configuration.
func (m *membership) forget(ctx context.Context, s *node.Status, living peers) {
	revision := m.joint.Load().revision()
	volumes, known := gone(s, living, revision)
	if !known {
		return
	}
	due := m.forgetting.due(time.Now(), volumes)
	if len(due) == 0 {
		return
	}
	within, cancel := context.WithTimeout(ctx, m.conf.Lease)
	defer cancel()
	forgotten, conditions, changes := m.node.Load().Forgets(due, revision)
	if len(forgotten) == 0 {
		return
	}
	if _, err := m.state.Commit(within, conditions, changes); err != nil { // it is tried again
		m.log.Debug("what the cluster's state has of volumes that are gone is still there", "error", err)
		return
	}
	m.log.Info("the cluster's state has forgotten volumes that are gone from the configuration", "volumes", len(forgotten), "revision", revision)
}
