package conf

import (
	"fmt"
	"slices"
)

func (d *decoder) validateServer(s *Server) {
	if n := len(s.CPUs); n > 0 && s.Threads > n {
		d.fail("server.threads", fmt.Sprint(s.Threads), fmt.Sprintf("at most one per CPU of cpus (%d)", n))
	}
	if half := s.BuffersPerThread / 2; s.Limits.MemoryPerSession > half {
		d.fail(memoryPerSession, s.Limits.MemoryPerSession.String(),
			fmt.Sprintf("at most half of buffers-per-thread (%v), so that no session starves the others of its thread", half))
	}
	if s.RealTime && s.Poll == PollAlways {
		d.fail("server.real-time", "true with poll: always", "threads that sleep: others of the server would never get the CPU")
	}
	d.validateNodes(s)
}

// validateNodes refuses CPUs that are in two nodes or in none.
func (d *decoder) validateNodes(s *Server) {
	nodeOf := map[int]int{}
	for i, list := range s.Nodes.CPUs {
		for _, cpu := range list {
			if other, taken := nodeOf[cpu]; taken {
				d.fail(fmt.Sprintf("server.nodes[%d]", i), fmt.Sprintf("CPU %d a second time", cpu), fmt.Sprintf("every CPU in one node; it is in nodes[%d]", other))
				break
			}
			nodeOf[cpu] = i
		}
	}
	if n := len(s.CPUs); n > 0 && s.Nodes.Count > n {
		d.fail("server.nodes", fmt.Sprint(s.Nodes.Count), fmt.Sprintf("at most one node per CPU of cpus (%d)", n))
	}
	stray := slices.IndexFunc(s.CPUs, func(cpu int) bool { _, ok := nodeOf[cpu]; return !ok })
	if len(nodeOf) > 0 && stray >= 0 {
		d.fail("server.cpus", fmt.Sprintf("CPU %d", s.CPUs[stray]), "CPUs that one of server.nodes has")
	}
}
