package target

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"lunar/internal/numa"
)

func TestPlacesDealNodesEqually(t *testing.T) {
	two := []numa.Node{{ID: 0, CPUs: []int{0, 1, 2}}, {ID: 2, CPUs: []int{4, 5}}}
	for _, c := range []struct {
		name  string
		nodes []numa.Node
		cpus  []int
		want  []place
	}{
		{"one node", []numa.Node{{CPUs: []int{0, 1}}}, nil, []place{{0, 0}, {0, 1}}},
		{"two nodes", two, nil, []place{{0, 0}, {2, 4}, {0, 1}, {2, 5}, {0, 2}}},
		{"some CPUs, in their order", two, []int{5, 2, 1}, []place{{0, 2}, {2, 5}, {0, 1}}},
		{"a node without CPUs", []numa.Node{{ID: 0}, {ID: 1, CPUs: []int{3}}}, nil, []place{{1, 3}}},
		{"a CPU of two nodes", []numa.Node{{ID: 0, CPUs: []int{0}}, {ID: 1, CPUs: []int{0}}}, nil, []place{{0, 0}, {1, 0}}},
	} {
		if got := placesOf(numa.Topology{Nodes: c.nodes}, c.cpus); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestServerRefusesCPUsOfNoNode(t *testing.T) {
	topology := numa.Topology{Nodes: []numa.Node{{CPUs: []int{0}}}}
	_, err := NewServer(Config{Topology: topology, CPUs: []int{7}, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "CPU 7") {
		t.Errorf("CPU 7 in a topology without it: %v, expected an error that names it", err)
	}
	_, err = NewServer(Config{Topology: numa.Topology{Nodes: []numa.Node{{}}}, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		t.Error("a topology without CPUs was accepted")
	}
}

// The threads of an override know its nodes, whatever the machine has.
func TestThreadsKnowTheirNodes(t *testing.T) {
	real, err := numa.Discover(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	topology, err := numa.Override(real, 4)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(Config{Topology: topology, Threads: 6, Buffers: 1 << 20, Workers: 5, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.stopThreads()
	defer s.closePortals()
	for i, th := range s.threads {
		if got := th.loop.Node(); got != i%4 {
			t.Errorf("thread %d is on node %d, expected %d", i, got, i%4)
		}
	}
	if len(s.workers) != 4 || s.threads[0].loop.Workers() == s.threads[1].loop.Workers() || s.threads[0].loop.Workers() != s.threads[4].loop.Workers() {
		t.Error("workers are not shared by the threads of one node, and by no others")
	}
}
