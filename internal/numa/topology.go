// Package numa tells which CPUs and how much memory belong together, and binds
// threads to CPUs.
package numa

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
)

// Node is one NUMA node.
type Node struct {
	ID          int    // the kernel's number
	CPUs        []int  // those that the process may use, ascending; empty on a memory-only node
	MemoryBytes uint64 // 0 on a node without memory, or when unknown
}

// Topology is the machine as the process may use it.
type Topology struct {
	Nodes  []Node // ascending by ID, at least one; every allowed CPU is in exactly one (see Override)
	Source string // what the nodes were taken from: ghw, sysfs, override, or none when nothing shows any

	memory map[int]int // what MemoryNode says where that is not the ID itself
}

// Discover reads the topology once, with ghw, and checks it against sysfs: where
// the two differ, or ghw finds nothing, sysfs is used. A machine, or a container,
// that shows no nodes is one node 0 with all allowed CPUs. It fails only when the
// process may use no CPU at all.
func Discover(log *slog.Logger) (Topology, error) {
	return discover("/", Allowed(), log)
}

// discover works on the tree under root, so that tests can bring their own.
func discover(root string, allowed []int, log *slog.Logger) (Topology, error) {
	if len(allowed) == 0 {
		return Topology{}, fmt.Errorf("NUMA topology: found no CPU that this process may use, expected at least one")
	}
	found, source := fromGHW(root, log), "ghw"
	checked := fromSysfs(filepath.Join(root, sysNodes))
	if !sameShape(found, checked) {
		if len(found) > 0 {
			log.Warn("ghw and sysfs disagree about NUMA nodes, using sysfs", "ghw", found, "sysfs", checked)
		}
		found, source = checked, "sysfs"
	}
	if len(found) == 0 {
		source = "none"
	}
	return Topology{Nodes: restrict(found, allowed), Source: source}, nil
}

// sameShape compares what placement depends on: which nodes exist and which CPUs
// they have.
func sameShape(a, b []Node) bool {
	return slices.EqualFunc(a, b, func(x, y Node) bool {
		return x.ID == y.ID && slices.Equal(x.CPUs, y.CPUs)
	})
}

// restrict keeps the allowed CPUs. Those that no node lists go to the first node,
// so that each has one.
func restrict(nodes []Node, allowed []int) []Node {
	if len(nodes) == 0 {
		return []Node{{CPUs: slices.Clone(allowed)}}
	}
	rest := slices.Clone(allowed)
	kept := make([]Node, len(nodes))
	for i, n := range nodes {
		n.CPUs = intersect(n.CPUs, allowed)
		rest = slices.DeleteFunc(rest, func(cpu int) bool { return slices.Contains(n.CPUs, cpu) })
		kept[i] = n
	}
	kept[0].CPUs = append(kept[0].CPUs, rest...)
	slices.Sort(kept[0].CPUs)
	return kept
}

func intersect(a, b []int) []int {
	var both []int
	for _, x := range a {
		if slices.Contains(b, x) {
			both = append(both, x)
		}
	}
	return both
}

// NodeOf returns the ID of the node that has cpu, -1 when none has.
func (t Topology) NodeOf(cpu int) int {
	for _, n := range t.Nodes {
		if slices.Contains(n.CPUs, cpu) {
			return n.ID
		}
	}
	return -1
}

// WithCPUs returns the nodes that event threads can run on.
func (t Topology) WithCPUs() []Node {
	return slices.DeleteFunc(slices.Clone(t.Nodes), func(n Node) bool { return len(n.CPUs) == 0 })
}
