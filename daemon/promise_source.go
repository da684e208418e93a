package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lunar/control"
	"lunar/control/server"
	"lunar/scheduler/nodes"
)

// ClusterPromises implements server.Source.
func (s *source) ClusterPromises() (control.ClusterPromises, error) {
	m := s.daemon.member
	if m == nil {
		return control.ClusterPromises{}, noCluster()
	}
	if m.keeper == nil {
		return control.ClusterPromises{}, &control.Refusal{What: "each node promises by itself", State: true, Reasons: []control.Reason{{Text: "found no links to other nodes, expected cluster.link (docs/cluster.md)"}}}
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	st, err := m.keeper.Status(ctx)
	if err != nil {
		return control.ClusterPromises{}, &control.Refusal{What: "the promises over all nodes are not known here", State: true, Reasons: []control.Reason{{Text: err.Error()}}}
	}
	out := control.ClusterPromises{Controller: st.Controller, Term: st.Term, Nodes: nonNil(st.Nodes), Silent: nonNil(st.Silent), Devices: []control.Device{}, Promises: []control.ClusterPromise{}, More: st.More}
	for _, d := range st.Devices {
		out.Devices = append(out.Devices, control.Device{Name: d.Name, Volumes: []string{}, Tokens: d.Capacity, Source: "learnt", Reserved: d.Reserved, History: nonNil(d.History)})
	}
	for i := range st.Entities {
		out.Promises = append(out.Promises, promiseOf(&st.Entities[i], &st.Status))
	}
	slices.SortFunc(out.Promises, func(a, b control.ClusterPromise) int { return strings.Compare(a.Level+a.Name, b.Level+b.Name) })
	return out, nil
}

func nonNil[T any](all []T) []T { return append([]T{}, all...) }

// promiseOf is a promise in the API's terms.
func promiseOf(e *nodes.EntityStatus, s *nodes.Status) control.ClusterPromise {
	out := control.ClusterPromise{
		Level: e.Level, Name: server.Sayable(strings.TrimPrefix(e.Key, e.Level+" ")), Reservation: e.Reservation, Limit: e.Limit,
		Met: e.Fulfilment.Met, Missed: e.Fulfilment.Missed, Nodes: []control.ClusterQuota{},
	}
	for _, q := range e.Quotas {
		out.Served += q.Served
		out.Nodes = append(out.Nodes, control.ClusterQuota{Node: q.Node, Reserved: q.Reserved, Limit: q.Limit, Served: q.Served})
	}
	if n := len(e.Periods); n > 0 && e.Reservation > 0 && !e.Periods[n-1].Met() {
		out.Why = whyMissed(e, s)
	}
	return out
}

// whyMissed is why a reservation was not kept in the last second, as far as the controller knows.
func whyMissed(e *nodes.EntityStatus, s *nodes.Status) string {
	for _, d := range s.Devices {
		uses := slices.ContainsFunc(e.Quotas, func(q nodes.Quota) bool { return slices.Contains(q.Devices, d.Name) })
		if uses && d.Capacity > 0 && d.Reserved > d.Capacity {
			return fmt.Sprintf("of %s %d tokens per second are reserved over all nodes, and it can do %d", d.Name, d.Reserved, d.Capacity)
		}
	}
	if len(s.Silent) > 0 {
		return "what it got from these nodes is not known, which do not report: " + strings.Join(s.Silent, ", ")
	}
	return "its commands came to another node less than two intervals ago, or it keeps too few outstanding, or an event thread is full: lunar qos explain at the nodes that serve it"
}

// lapsed is what to say while nothing is heard of the controller.
const lapsed = "Nothing is heard of the node that keeps the promises over all nodes: of each limit this node has the smaller of what it had and its even part, and of each reservation what it had."

// unheard says which nodes did not tell what their sessions use.
func unheard(silent []string) (o outcome) {
	if len(silent) > 0 {
		o.Note = "reservations of initiators of other nodes were counted but for those of " + strings.Join(silent, ", ") + ", which did not answer"
	}
	return o
}
