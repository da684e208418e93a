package numa

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOverride(t *testing.T) {
	one := Topology{Nodes: []Node{{0, []int{0, 1}, 800}}}
	two := Topology{Nodes: []Node{{0, []int{0, 2}, 800}, {3, []int{1, 3}, 400}}}
	for _, c := range []struct {
		name   string
		real   Topology
		n      int
		want   []Node
		memory []int
	}{
		{"one as one", one, 1, []Node{{0, []int{0, 1}, 800}}, []int{0}},
		{"one as two", one, 2, []Node{{0, []int{0}, 400}, {1, []int{1}, 400}}, []int{0, 0}},
		{"one as four shares CPUs", one, 4, []Node{{0, []int{0}, 200}, {1, []int{0}, 200}, {2, []int{1}, 200}, {3, []int{1}, 200}}, []int{0, 0, 0, 0}},
		{"two as two", two, 2, []Node{{0, []int{0, 2}, 800}, {1, []int{1, 3}, 400}}, []int{0, 3}},
		{"two as four", two, 4, []Node{{0, []int{0}, 400}, {1, []int{2}, 400}, {2, []int{1}, 200}, {3, []int{3}, 200}}, []int{0, 0, 3, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Override(c.real, c.n)
			if err != nil || !slices.EqualFunc(got.Nodes, c.want, sameNode) {
				t.Fatalf("nodes %v %v, expected %v", got.Nodes, err, c.want)
			}
			for i, want := range c.memory {
				if m := got.MemoryNode(i); m != want {
					t.Errorf("memory of node %d comes from %d, expected %d", i, m, want)
				}
			}
		})
	}
	if m := two.MemoryNode(3); m != 3 {
		t.Errorf("memory of real node 3 comes from %d", m)
	}
}

// Whatever the machine and the number: every node has a CPU, every CPU a node,
// and no more memory is promised than there is.
func TestOverrideProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cpus := rapid.IntRange(1, 16).Draw(rt, "cpus")
		split := rapid.IntRange(0, cpus).Draw(rt, "split")
		real := Topology{Nodes: []Node{{ID: 0, MemoryBytes: 1 << 20}, {ID: 2, MemoryBytes: 1 << 19}}}
		for cpu := range cpus {
			at := 0
			if cpu >= split {
				at = 1
			}
			real.Nodes[at].CPUs = append(real.Nodes[at].CPUs, cpu)
		}
		got, err := Override(real, rapid.IntRange(1, 20).Draw(rt, "nodes"))
		if err != nil {
			rt.Fatal(err)
		}
		var promised uint64
		for _, n := range got.Nodes {
			if len(n.CPUs) == 0 {
				rt.Fatalf("node %d has no CPU", n.ID)
			}
			promised += n.MemoryBytes
		}
		for cpu := range cpus {
			if got.NodeOf(cpu) < 0 {
				rt.Fatalf("CPU %d is on no node", cpu)
			}
		}
		if promised > 1<<20+1<<19 {
			rt.Fatalf("%d bytes promised", promised)
		}
	})
}

func TestOverrideRefuses(t *testing.T) {
	one := Topology{Nodes: []Node{{0, []int{0, 1}, 800}}}
	for name, f := range map[string]func() (Topology, error){
		"no nodes":       func() (Topology, error) { return Override(one, 0) },
		"too many nodes": func() (Topology, error) { return Override(one, maxOverride+1) },
		"no CPUs":        func() (Topology, error) { return Override(Topology{Nodes: []Node{{ID: 0}}}, 2) },
		"no lists":       func() (Topology, error) { return OverrideCPUs(one, nil) },
		"an empty list":  func() (Topology, error) { return OverrideCPUs(one, [][]int{{0}, {}}) },
		"a foreign CPU":  func() (Topology, error) { return OverrideCPUs(one, [][]int{{0}, {7}}) },
	} {
		if got, err := f(); err == nil {
			t.Errorf("%s: %v, expected an error", name, got)
		}
	}
}
