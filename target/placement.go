package target

import (
	"fmt"
	"slices"

	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// place is where an event thread runs.
type place struct{ node, cpu int }

// placesOf lists the CPUs of cpus, or all if it is empty, node by node in turn: a
// prefix of the list gives each node the same share, as far as it has CPUs. A CPU
// that is no node's is not in it, one that several have is there for each.
func placesOf(t numa.Topology, cpus []int) []place {
	var out []place
	for turn, found := 0, true; found; turn++ {
		found = false
		for _, n := range t.Nodes {
			if own := usable(n, cpus); turn < len(own) {
				out, found = append(out, place{n.ID, own[turn]}), true
			}
		}
	}
	return out
}

// usable returns the node's CPUs that are in cpus, in that order; an empty cpus
// is no restriction.
func usable(n numa.Node, cpus []int) []int {
	if len(cpus) == 0 {
		return n.CPUs
	}
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool { return !slices.Contains(n.CPUs, cpu) })
}

// workersOf returns the node's workers. Those of the only node may run anywhere;
// of several nodes each has a pool of its own, bound to its CPUs, so that what a
// call copies stays on the node of the thread that asked for it.
func (s *Server) workersOf(node int) *evloop.Workers {
	if w := s.workers[node]; w != nil {
		return w
	}
	nodes := s.config.Topology.WithCPUs()
	at := slices.IndexFunc(nodes, func(n numa.Node) bool { return n.ID == node })
	var cpus []int
	if len(nodes) > 1 {
		cpus = usable(nodes[at], s.config.CPUs)
	}
	s.workers[node] = evloop.NewWorkersOn((s.config.Workers+len(nodes)-1)/len(nodes), cpus)
	return s.workers[node]
}

// checkPlaces reports CPUs that were asked for and are not there.
func checkPlaces(t numa.Topology, cpus []int, at []place) error {
	for _, cpu := range cpus {
		if t.NodeOf(cpu) < 0 {
			return fmt.Errorf("event threads: CPU %d is in none of the %d NUMA nodes that this process may use", cpu, len(t.Nodes))
		}
	}
	if len(at) == 0 {
		return fmt.Errorf("event threads: found no CPU in %d NUMA nodes, expected at least one", len(t.Nodes))
	}
	return nil
}
