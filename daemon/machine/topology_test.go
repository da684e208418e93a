package machine

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/numa"
)

func TestOverride(t *testing.T) {
	two := numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: []int{0, 2, 4}, MemoryBytes: 800}, {ID: 1, CPUs: []int{1, 3, 5}, MemoryBytes: 800}}}
	for server, want := range map[string]string{
		"{}":                            "[[0 2 4] [1 3 5]]",
		"{nodes: auto}":                 "[[0 2 4] [1 3 5]]",
		"{nodes: 1}":                    "[[0 1 2 3 4 5]]",
		"{nodes: 3}":                    "[[0 2] [1 4] [3 5]]",
		`{nodes: ["0-1", "5"]}`:         "[[0 1] [5]]",
		"{nodes: 2, cpus: 0-3}":         "[[0 2] [1 3]]",
		"{nodes: 2, cpus: 0-2}":         "[[0] [1 2]]",
		`{cpus: "1,5", nodes: ["1,5"]}`: "[[1 5]]",
		`{nodes: ["0-6"]}`:              "CPU 6 is not one that this process may use",
	} {
		cfg, _, err := conf.Parse("test", []byte("server: "+server+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := override(two, &cfg.Server)
		lists := [][]int{}
		for _, n := range got.Nodes {
			lists = append(lists, n.CPUs)
		}
		if text := fmt.Sprint(lists, err); !strings.Contains(text, want) {
			t.Errorf("%s: found %s, expected %s", server, text, want)
		}
	}
}

func TestLogTopology(t *testing.T) {
	var out bytes.Buffer
	real := numa.Topology{Nodes: []numa.Node{{ID: 0, CPUs: []int{0, 1, 2, 8}, MemoryBytes: 1 << 30}, {ID: 1}}, Source: "sysfs"}
	LogTopology(real, slog.New(slog.NewTextHandler(&out, nil)))
	for _, want := range []string{
		`node=0 cpus=0-2,8 memory=1GiB memory-of=0 source=sysfs`,
		"node=1 cpus=none memory=unknown memory-of=1 source=sysfs",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("found no %s in\n%s", want, &out)
		}
	}
}
