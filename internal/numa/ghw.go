package numa

import (
	"log/slog"
	"slices"

	"github.com/jaypipes/ghw/pkg/option"
	"github.com/jaypipes/ghw/pkg/topology"
)

// fromGHW returns the nodes that ghw finds under root, ascending by ID. It has no
// error: ghw reports a broken node by leaving it and all later ones out, with a
// warning on standard error.
func fromGHW(root string, log *slog.Logger) []Node {
	info, err := topology.New(option.WithChroot(root), option.WithDisableTools())
	if err != nil {
		log.Warn("ghw found no NUMA topology", "reason", err)
		return nil
	}
	nodes := make([]Node, 0, len(info.Nodes))
	for _, n := range info.Nodes {
		nodes = append(nodes, fromGHWNode(n))
	}
	slices.SortFunc(nodes, func(a, b Node) int { return a.ID - b.ID })
	return nodes
}

func fromGHWNode(n *topology.Node) Node {
	node := Node{ID: n.ID}
	for _, core := range n.Cores {
		node.CPUs = append(node.CPUs, core.LogicalProcessors...)
	}
	slices.Sort(node.CPUs)
	if n.Memory != nil {
		node.MemoryBytes = uint64(max(n.Memory.TotalUsableBytes, 0))
	}
	return node
}
