package machine

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"lunar/conf"
	"lunar/internal/bytesize"
	"lunar/internal/numa"
)

// TopologyFor finds the machine's NUMA nodes, or makes those that the
// configuration asks for.
func TopologyFor(s *conf.Server, log *slog.Logger) (numa.Topology, error) {
	real, err := numa.Discover(log)
	if err != nil {
		return numa.Topology{}, err
	}
	t, err := override(real, s)
	if err != nil {
		return numa.Topology{}, fmt.Errorf("server.nodes: %w", err)
	}
	return t, nil
}

func override(real numa.Topology, s *conf.Server) (numa.Topology, error) {
	switch {
	case len(s.Nodes.CPUs) > 0:
		return numa.OverrideCPUs(real, s.Nodes.CPUs)
	case s.Nodes.Count > 0 && len(s.CPUs) > 0:
		return numa.OverrideCPUs(real, deal(real, s.CPUs, s.Nodes.Count))
	case s.Nodes.Count > 0:
		return numa.Override(real, s.Nodes.Count)
	}
	return real, nil
}

// deal divides some of the CPUs among n nodes, those of one real node next to
// each other. There are at least n.
func deal(real numa.Topology, cpus []int, n int) [][]int {
	ordered := slices.Clone(cpus)
	slices.SortStableFunc(ordered, func(a, b int) int { return real.NodeOf(a) - real.NodeOf(b) })
	lists := make([][]int, n)
	for i := range lists {
		lists[i] = ordered[i*len(ordered)/n : (i+1)*len(ordered)/n]
	}
	return lists
}

// LogTopology says what placement will go by.
func LogTopology(t numa.Topology, log *slog.Logger) {
	for _, n := range t.Nodes {
		memory := "unknown"
		if n.MemoryBytes > 0 {
			memory = bytesize.Text(int64(n.MemoryBytes))
		}
		log.Info("NUMA node", "node", n.ID, "cpus", cpuRanges(n.CPUs), "memory", memory,
			"memory-of", t.MemoryNode(n.ID), "source", t.Source)
	}
}

// cpuRanges writes ascending numbers as the kernel does: 0-3,8.
func cpuRanges(cpus []int) string {
	if len(cpus) == 0 {
		return "none"
	}
	var parts []string
	for i := 0; i < len(cpus); {
		end := i + 1
		for end < len(cpus) && cpus[end] == cpus[end-1]+1 {
			end++
		}
		part := strconv.Itoa(cpus[i])
		if end > i+1 {
			part += "-" + strconv.Itoa(cpus[end-1])
		}
		parts, i = append(parts, part), end
	}
	return strings.Join(parts, ",")
}
