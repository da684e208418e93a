package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"lunar/cluster/promise"
	"lunar/daemon/medium"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/scheduler/nodes"
)

// linked reports whether there are links to other nodes, over which promises are kept: without
// them each node promises by itself.
func (m *membership) linked() bool { return m != nil && m.links != nil }

// openPromise has the server hear what other nodes say of promises, before links begin.
func (d *daemon) openPromise() {
	m := d.member
	if !m.linked() {
		return
	}
	m.living.Store(&[]string{m.conf.Node})
	m.keeper = promise.New(promise.Config{
		State: m.state, Keys: m.keys(), Node: m.conf.Node, Lease: min(m.conf.Suspect, m.conf.Lease),
		Links: m.links, Gates: d.Server, Living: func() []string { return *m.living.Load() }, Shared: medium.Shared,
		Controller: d.qos.controller, Flows: d.flowsHere, Logger: m.log,
	})
}

// controller sets a controller of all nodes' promises.
func (q *qos) controller() nodes.Config {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.startCapacities()
	maps.DeleteFunc(all, func(_ string, tokens int64) bool { return tokens == 0 })
	return nodes.Config{Estimator: haechi.EstimatorConfig{Profile: q.cfg.QoS.Capacity, Slack: slack}, Profiles: all}
}

// alive notes which nodes live, for the promise.
func (m *membership) alive(all map[string]json.RawMessage) {
	if !m.linked() {
		return
	}
	names := slices.Sorted(maps.Keys(all))
	if _, own := all[m.conf.Node]; !own {
		names = append(names, m.conf.Node)
	}
	m.living.Store(&names)
}

// flowsHere are what sessions of this server use.
func (d *daemon) flowsHere() []scheduler.Flow { return flowsOf(d.Sessions()) }

// askTime is how long other nodes may take to say what their sessions use.
const askTime = time.Second

// connected are what sessions use, of all nodes as far as they say so.
func (d *daemon) connected() (flows []scheduler.Flow, silent []string) {
	flows = d.flowsHere()
	if d.member == nil || d.member.keeper == nil {
		return flows, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	elsewhere, silent := d.member.keeper.Elsewhere(ctx)
	return append(flows, elsewhere...), silent
}
