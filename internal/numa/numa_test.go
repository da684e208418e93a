package numa

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lunar/internal/numa/numatest"
)

// tree is a fake sysfs: path to content.
type tree map[string]string

// machine returns what the kernel shows of the given nodes; list are their CPUs,
// kib their memory, 0 for none.
func machine(online string, nodes ...fakeNode) tree {
	files := tree{
		"proc/meminfo":                               "MemTotal: 1 kB\nHugepagesize: 2048 kB\nHugetlb: 0 kB\n",
		sysNodes + "/online":                         online + "\n",
		sysNodes + "/has_cpu":                        "0\n",
		sysNodes + "/possible":                       "0-7\n",
		"sys/devices/system/memory/block_size_bytes": "8000000\n",
	}
	for _, n := range nodes {
		n.addTo(files)
	}
	return files
}

type fakeNode struct {
	id   int
	list string
	kib  uint64
}

func (n fakeNode) addTo(files tree) {
	dir := fmt.Sprintf("%s/node%d", sysNodes, n.id)
	files[dir+"/cpulist"] = n.list + "\n"
	files[dir+"/distance"] = "10 21\n"
	files[dir+"/meminfo"] = fmt.Sprintf("Node %d MemTotal:  %d kB\nNode %d MemFree: 1 kB\n", n.id, n.kib, n.id)
	files[dir+"/hugepages/hugepages-2048kB/nr_hugepages"] = "0\n"
	files[dir+"/hugepages/hugepages-2048kB/free_hugepages"] = "0\n"
	files[dir+"/hugepages/hugepages-2048kB/surplus_hugepages"] = "0\n"
	cpus, _ := parseList(n.list)
	for _, cpu := range cpus {
		files[fmt.Sprintf("%s/cpu%d/topology/core_id", dir, cpu)] = fmt.Sprintf("%d\n", cpu/2)
	}
}

func (f tree) write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range f {
		full := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func TestDiscover(t *testing.T) {
	two := []fakeNode{{0, "0-1", 1000}, {1, "2-3", 2000}}
	for _, c := range []struct {
		name    string
		files   tree
		allowed []int
		want    []Node
	}{
		{"one node", machine("0", fakeNode{0, "0-1", 1000}), []int{0, 1}, []Node{{0, []int{0, 1}, 1000 << 10}}},
		{"two nodes", machine("0-1", two...), []int{0, 1, 2, 3},
			[]Node{{0, []int{0, 1}, 1000 << 10}, {1, []int{2, 3}, 2000 << 10}}},
		{"a gap in the numbers", machine("0,2", fakeNode{0, "0", 1}, fakeNode{2, "1", 2}), []int{0, 1},
			[]Node{{0, []int{0}, 1 << 10}, {2, []int{1}, 2 << 10}}},
		{"ten nodes sort by number", machine("0,2,10", fakeNode{0, "0", 1}, fakeNode{10, "1", 1}, fakeNode{2, "2", 1}), []int{0, 1, 2},
			[]Node{{0, []int{0}, 1 << 10}, {2, []int{2}, 1 << 10}, {10, []int{1}, 1 << 10}}},
		{"cpuset leaves a node without CPUs", machine("0-1", two...), []int{2},
			[]Node{{0, nil, 1000 << 10}, {1, []int{2}, 2000 << 10}}},
		{"node without CPUs", machine("0-1", fakeNode{0, "0-1", 5}, fakeNode{1, "", 7}), []int{0, 1},
			[]Node{{0, []int{0, 1}, 5 << 10}, {1, nil, 7 << 10}}},
		{"node without memory", machine("0-1", fakeNode{0, "0", 5}, fakeNode{1, "1", 0}), []int{0, 1},
			[]Node{{0, []int{0}, 5 << 10}, {1, []int{1}, 0}}},
		{"CPU that no node lists", machine("0-1", two...), []int{0, 1, 2, 3, 4},
			[]Node{{0, []int{0, 1, 4}, 1000 << 10}, {1, []int{2, 3}, 2000 << 10}}},
		{"container without sysfs", tree{"etc/hostname": "box"}, []int{3, 5}, []Node{{0, []int{3, 5}, 0}}},
		{"sysfs without NUMA", tree{"sys/devices/system/cpu/online": "0-1\n"}, []int{0, 1}, []Node{{0, []int{0, 1}, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := discover(c.files.write(t), c.allowed, quiet())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got.Nodes, c.want, sameNode) {
				t.Errorf("nodes %v, expected %v", got.Nodes, c.want)
			}
		})
	}
}

func sameNode(a, b Node) bool {
	return a.ID == b.ID && a.MemoryBytes == b.MemoryBytes && slices.Equal(a.CPUs, b.CPUs)
}

// On a sound tree the answer is ghw's, and sysfs confirms it.
func TestGHWAndSysfsAgree(t *testing.T) {
	root := machine("0-2", fakeNode{0, "0-1", 1000}, fakeNode{1, "2-3", 0}, fakeNode{2, "", 5}).write(t)
	found, checked := fromGHW(root, quiet()), fromSysfs(filepath.Join(root, sysNodes))
	if len(found) != 3 || !slices.EqualFunc(found, checked, sameNode) {
		t.Errorf("ghw found %v, sysfs %v; expected the same three nodes", found, checked)
	}
}

// ghw drops a node with a file that it cannot parse and every node after it,
// without an error; sysfs still has them.
func TestBrokenNodeDoesNotHideOthers(t *testing.T) {
	files := machine("0-2", fakeNode{0, "0", 1}, fakeNode{1, "1", 2}, fakeNode{2, "2", 3})
	files[sysNodes+"/node1/distance"] = "far away\n"
	var log bytes.Buffer
	got, err := discover(files.write(t), []int{0, 1, 2}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := []Node{{0, []int{0}, 1 << 10}, {1, []int{1}, 2 << 10}, {2, []int{2}, 3 << 10}}
	if !slices.EqualFunc(got.Nodes, want, sameNode) {
		t.Errorf("nodes %v, expected %v", got.Nodes, want)
	}
	if !strings.Contains(log.String(), "disagree") {
		t.Errorf("log %q, expected the disagreement", log.String())
	}
}

func TestDiscoverNeedsACPU(t *testing.T) {
	if got, err := discover(t.TempDir(), nil, quiet()); err == nil {
		t.Errorf("topology %v of no CPU, expected an error", got)
	}
}

// Whatever this machine is: every allowed CPU is on exactly one node, and ghw and
// sysfs agree.
func TestThisMachine(t *testing.T) {
	var log bytes.Buffer
	topology, err := Discover(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, n := range topology.WithCPUs() {
		all = append(all, n.CPUs...)
		for _, cpu := range n.CPUs {
			if topology.NodeOf(cpu) != n.ID {
				t.Errorf("CPU %d is on node %d, expected %d", cpu, topology.NodeOf(cpu), n.ID)
			}
		}
	}
	if slices.Sort(all); !slices.Equal(all, Allowed()) {
		t.Errorf("CPUs of all nodes are %v, expected the allowed %v", all, Allowed())
	}
	if topology.NodeOf(1<<20) != -1 {
		t.Error("a CPU that does not exist has a node")
	}
	if log.Len() > 0 {
		t.Logf("discovery said: %s", log.String())
	}
}

func TestPin(t *testing.T) {
	before := Allowed()
	OwnThread(func() {
		cpu := before[len(before)-1]
		if err := Pin(cpu); err != nil {
			t.Error(err)
		}
		if got := affinity(); !slices.Equal(got, []int{cpu}) {
			t.Errorf("affinity %v, expected CPU %d", got, cpu)
		}
		if got := Allowed(); !slices.Equal(got, before) {
			t.Errorf("allowed %v after pinning one thread, expected still %v", got, before)
		}
	})
	OwnThread(func() {
		for _, cpu := range []int{-1, 1023, 1 << 20} {
			if err := Pin(cpu); err == nil || !strings.Contains(err.Error(), fmt.Sprint(cpu)) {
				t.Errorf("pin to CPU %d: %v, expected an error that names it", cpu, err)
			}
		}
	})
}

// The first thread of the process outlives its goroutines: nothing runs there that
// makes the thread its own.
func TestOwnThreadIsNotTheFirst(t *testing.T) {
	before := affinity()
	numatest.OnFirstThread(t, func() {
		if err := Pin(before[0]); err == nil || !slices.Equal(affinity(), before) {
			t.Errorf("pinning it: %v, CPUs %v; expected an error and %v", err, affinity(), before)
		}
		runtime.UnlockOSThread() // so that what follows may run here
		defer runtime.LockOSThread()
		for range 10 {
			OwnThread(func() {
				if onFirstThread() {
					t.Error("it is used as a thread of somebody's own")
				}
			})
		}
	})
}

func TestNICNode(t *testing.T) {
	root := tree{
		sysNet + "/eth0/device/numa_node": "1\n",
		sysNet + "/eth1/device/numa_node": "-1\n",
		sysNet + "/eth2/device/numa_node": "none\n",
		sysNet + "/lo/address":            "00:00:00:00:00:00\n",
		"sys/class/device/numa_node":      "7\n",
		"sys/devices/slot/numa_node":      "3\n",
		"sys/devices/slot/virtio1/status": "0x0000000f\n",
		sysNet + "/eth3/address":          "52:54:00:12:34:56\n",
	}.write(t)
	if err := os.Symlink("../../../devices/slot/virtio1", filepath.Join(root, sysNet, "eth3/device")); err != nil {
		t.Fatal(err)
	}
	for netdev, want := range map[string]int{"eth3": 3, "eth0": 1, "eth1": -1, "eth2": -1, "lo": -1, "missing": -1, "": -1, "..": -1, "../net/eth0": -1} {
		if got := nicNode(root, netdev); got != want {
			t.Errorf("device %q is on node %d, expected %d", netdev, got, want)
		}
	}
	if got := NICNode("lo"); got != -1 {
		t.Errorf("loopback is on node %d, expected -1", got)
	}
}

func TestParseList(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "0": {0}, "0-3": {0, 1, 2, 3}, "0-1,8,4-5": {0, 1, 4, 5, 8}, "2,2,1-2": {1, 2},
	} {
		if got, err := parseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v %v, expected %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-", "1-", "-1", "3-1", "1,,2", "0-99999999", "1 2", ","} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q: %v, expected an error", text, got)
		}
	}
}

// A list of numbers written out parses to itself.
func TestParseListProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.IntRange(0, 2000), 0, 50, rapid.ID[int]).Draw(rt, "cpus")
		parts := make([]string, len(want))
		for i, n := range want {
			parts[i] = fmt.Sprint(n)
		}
		got, err := parseList(strings.Join(parts, ","))
		if slices.Sort(want); err != nil || !slices.Equal(got, want) {
			rt.Fatalf("%v: %v %v", want, got, err)
		}
	})
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := parseList(text); err == nil && !slices.IsSorted(list) {
			t.Errorf("%q: %v is not ascending", text, list)
		}
	})
}
