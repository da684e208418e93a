package numa

import (
	"fmt"
	"slices"
)

// Override makes a machine act as n nodes, numbered from 0, so that everything
// that depends on nodes can be used and tested anywhere. The CPUs are dealt out
// in ascending order and as evenly as possible, those of one real node next to
// each other; memory comes from the real node of a node's first CPU (see
// MemoryNode) and its size is divided by how many nodes take theirs from there.
// With more nodes than CPUs several nodes share a CPU, and NodeOf names the
// first of them.
func Override(real Topology, n int) (Topology, error) {
	if n < 1 || n > maxOverride {
		return Topology{}, fmt.Errorf("NUMA topology of %d nodes: expected 1 to %d", n, maxOverride)
	}
	var cpus []int
	for _, node := range real.Nodes {
		cpus = append(cpus, node.CPUs...)
	}
	if len(cpus) == 0 {
		return Topology{}, fmt.Errorf("NUMA topology of %d nodes: found no CPU to deal out, expected at least one", n)
	}
	lists := make([][]int, n)
	for i := range lists {
		first, end := i*len(cpus)/n, (i+1)*len(cpus)/n
		lists[i] = cpus[first:max(end, first+1)]
	}
	return OverrideCPUs(real, lists)
}

// maxOverride is the kernel's own limit of nodes.
const maxOverride = 1024

// OverrideCPUs is Override with the CPUs of each node given: node i has
// lists[i]. CPUs that no list names stay unused. It fails if a list is empty or
// names a CPU that the process may not use.
func OverrideCPUs(real Topology, lists [][]int) (Topology, error) {
	if len(lists) < 1 || len(lists) > maxOverride {
		return Topology{}, fmt.Errorf("NUMA topology of %d nodes: expected 1 to %d", len(lists), maxOverride)
	}
	t := Topology{Nodes: make([]Node, len(lists)), Source: "override", memory: make(map[int]int, len(lists))}
	takers := map[int]uint64{}
	for i, list := range lists {
		from, err := checkCPUs(real, i, list)
		if err != nil {
			return Topology{}, err
		}
		t.Nodes[i] = Node{ID: i, CPUs: slices.Sorted(slices.Values(list))}
		t.memory[i] = real.MemoryNode(from)
		takers[from]++
	}
	for i, list := range lists {
		from := real.NodeOf(list[0])
		at := slices.IndexFunc(real.Nodes, func(n Node) bool { return n.ID == from })
		t.Nodes[i].MemoryBytes = real.Nodes[at].MemoryBytes / takers[from]
	}
	return t, nil
}

// checkCPUs returns the real node of a list's first CPU.
func checkCPUs(real Topology, node int, list []int) (from int, err error) {
	if len(list) == 0 {
		return 0, fmt.Errorf("NUMA node %d: found no CPU, expected at least one", node)
	}
	for _, cpu := range list {
		if real.NodeOf(cpu) < 0 {
			return 0, fmt.Errorf("NUMA node %d: CPU %d is not one that this process may use", node, cpu)
		}
	}
	return real.NodeOf(list[0]), nil
}

// MemoryNode returns the kernel's number of the node that the memory of node id
// comes from: id itself, unless the topology is an Override.
func (t Topology) MemoryNode(id int) int {
	if real, ok := t.memory[id]; ok {
		return real
	}
	return id
}
