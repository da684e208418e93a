package target

import (
	"fmt"
	"net/netip"
	"slices"

	"lunar/internal/evloop"
	"lunar/internal/numa"
	"lunar/target/scsi"
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

// nearest returns the thread of a group for a connection: of those on the node of
// its device, or of all if there are none, the least loaded; of several such the
// one on the CPU that its packets come in on, then one on the node of that CPU. To
// be near does not make up for more work: it saves a part of what a packet costs.
func (s *Server) nearest(group []*thread, from origin) *thread {
	var near []*thread
	for _, th := range group {
		if from.node >= 0 && s.config.Topology.MemoryNode(th.loop.Node()) == from.node {
			near = append(near, th)
		}
	}
	if len(near) == 0 {
		near = group
	}
	best := near[0]
	for _, th := range near[1:] {
		load, least := th.load.Load(), best.load.Load()
		if load < least || load == least && s.closeness(th, from.cpu) > s.closeness(best, from.cpu) {
			best = th
		}
	}
	return best
}

// closeness is 2 for a thread on the CPU, 1 for one on its node.
func (s *Server) closeness(th *thread, cpu int) int {
	switch {
	case cpu < 0:
		return 0
	case th.loop.CPU() == cpu:
		return 2
	case th.loop.Node() >= 0 && th.loop.Node() == s.config.Topology.NodeOf(cpu):
		return 1
	}
	return 0
}

// sender implements node.
func (s *Server) sender(node, choice int) *evloop.Loop {
	n := 0
	for _, th := range s.threads {
		if th.loop.Node() == node {
			n++
		}
	}
	for _, th := range s.threads {
		if th.loop.Node() != node {
			continue
		}
		if choice%n == 0 {
			return th.loop
		}
		choice--
	}
	return nil
}

// LoopsFor returns the event threads that may serve a connection from remote to
// the portal group's address local, before it is known what it wants: those of the
// logical units that the group leads it to, and of them those of the NUMA node
// of the network device.
func (s *Server) LoopsFor(tag uint16, local, remote netip.Addr) []*evloop.Loop {
	group, nic := s.reachedBy(tag, remote), s.nodeOf(local)
	var all, near []*evloop.Loop
	for _, th := range group {
		all = append(all, th.loop)
		if nic >= 0 && s.config.Topology.MemoryNode(th.loop.Node()) == nic {
			near = append(near, th.loop)
		}
	}
	if len(near) > 0 {
		return near
	}
	return all
}

// reachedBy returns the event threads of the logical units that an initiator at
// the address may see through a portal group; all if there are none.
func (s *Server) reachedBy(tag uint16, remote netip.Addr) []*thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*thread
	for _, t := range s.mu.order {
		config := t.config.Load()
		if !slices.Contains(config.PortalGroups, tag) {
			continue
		}
		for i := range config.Access {
			if r := &config.Access[i]; r.matchesAddr(remote) {
				out = s.appendHomes(out, r)
			}
		}
	}
	if len(out) == 0 {
		return s.threads
	}
	return out
}

func (s *Server) appendHomes(out []*thread, r *AccessRule) []*thread {
	for _, m := range r.LUNs {
		for _, th := range s.mu.homes[m.LU] {
			if !slices.Contains(out, th) {
				out = append(out, th)
			}
		}
	}
	return out
}

// threadOf returns the event thread that runs the loop, which is the server's.
func (s *Server) threadOf(loop *evloop.Loop) *thread {
	return s.threads[slices.IndexFunc(s.threads, func(th *thread) bool { return th.loop == loop })]
}

// homeOf implements node.
func (s *Server) homeOf(lu *scsi.LogicalUnit, from origin, now *thread) *thread {
	group := s.groupOf(lu)
	if slices.Contains(group, now) {
		return now
	}
	return s.nearest(group, from)
}
