package daemon

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"lunar/cluster/node"
	"lunar/conf"
	"lunar/daemon/volumes"
)

// judgement is what this node is known not to be able to open.
type judgement struct {
	headers map[string][]byte // in the cluster's state, by volume
	unable  map[string]string // why, by volume
	at      time.Time
}

// judgeEvery is how often files are looked at again: whether key files open the volumes' headers, and
// those of Ceph clusters can be read.
const judgeEvery = 5 * time.Second

// unableOf are the volumes that this node may own, and could not open.
func (m *membership) unableOf(cfg *conf.Config, set *volumes.Set, headers map[string][]byte) map[string]string {
	unable, lacks := map[string]string{}, map[string]error{}
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		s := set.SharedOf(v.Name)
		if s == nil || !v.OwnedBy(m.conf.Node) {
			continue
		}
		err, looked := lacks[v.Ceph] // the files of a Ceph cluster are looked at once for all its volumes
		if !looked {
			err = set.Lacks(cfg, v)
			lacks[v.Ceph] = err
		}
		if err == nil {
			err = s.Unable(headers[v.Name])
		}
		if err != nil {
			unable[v.Name] = err.Error()
		}
	}
	return unable
}

// judge finds out what this node could not open, and logs what is new of that: before it is to take
// a volume over, and not by failing to. followPeers calls it.
func (m *membership) judge(s *node.Status, cfg *conf.Config, set *volumes.Set) {
	was, again := m.judged.Load(), m.judgeAgain.Swap(false)
	if !again && time.Since(was.at) < judgeEvery && maps.EqualFunc(was.headers, s.Headers, bytes.Equal) {
		return
	}
	now := &judgement{s.Headers, m.unableOf(cfg, set, s.Headers), time.Now()}
	m.judged.Store(now)
	m.tellUnable(was.unable, now.unable)
}

// tellUnable logs what has changed.
func (m *membership) tellUnable(was, now map[string]string) {
	for _, volume := range slices.Sorted(maps.Keys(now)) {
		if now[volume] != was[volume] {
			m.log.Error("this node could not open a volume, and is not to own it", "volume", volume, "node", m.conf.Node, "error", now[volume])
		}
	}
	for _, volume := range slices.Sorted(maps.Keys(was)) {
		if now[volume] == "" {
			m.log.Info("this node can open a volume again", "volume", volume, "node", m.conf.Node)
		}
	}
}
