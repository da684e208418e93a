package numa

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	sysNodes = "sys/devices/system/node"
	sysNet   = "sys/class/net"
)

// fromSysfs reads the nodes that the directory lists as online, ascending by ID.
// A node whose files cannot be read is still a node: without CPUs or memory.
func fromSysfs(dir string) []Node {
	ids := readList(filepath.Join(dir, "online"))
	nodes := make([]Node, 0, len(ids))
	for _, id := range ids {
		path := filepath.Join(dir, fmt.Sprintf("node%d", id))
		nodes = append(nodes, Node{
			ID:          id,
			CPUs:        readList(filepath.Join(path, "cpulist")),
			MemoryBytes: readMemTotal(filepath.Join(path, "meminfo")),
		})
	}
	return nodes
}

// readList reads a kernel list file such as "0-3,8"; anything else is empty.
func readList(path string) []int {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	list, err := parseList(strings.TrimSpace(string(text)))
	if err != nil {
		return nil
	}
	return list
}

// maxListed bounds a list's numbers, far above any kernel's CPU and node limits.
const maxListed = 1 << 16

// parseList parses the kernel's list format: decimal numbers and ranges,
// separated by commas. The result is ascending without duplicates.
func parseList(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || from > to || to >= maxListed {
			return nil, fmt.Errorf("list %q: found %q, expected a number or an ascending range", text, part)
		}
		for i := from; i <= to; i++ {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// readMemTotal finds "Node <id> MemTotal: <n> kB"; a node without memory lacks it
// or says 0.
func readMemTotal(path string) uint64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[2] == "MemTotal:" {
			kib, _ := strconv.ParseUint(fields[3], 10, 53) // a malformed number is unknown: 0
			return kib << 10
		}
	}
	return 0
}

// NICNode returns the NUMA node of a network device's slot, -1 when the device is
// virtual, unknown, or the platform does not say.
func NICNode(netdev string) int { return nicNode("/", netdev) }

func nicNode(root, netdev string) int {
	if netdev == "" || filepath.Base(netdev) != netdev || netdev == "." || netdev == ".." {
		return -1
	}
	device, err := filepath.EvalSymlinks(filepath.Join(root, sysNet, netdev, "device"))
	if err != nil {
		return -1
	}
	text, err := os.ReadFile(filepath.Join(device, "numa_node"))
	if errors.Is(err, fs.ErrNotExist) { // a virtio device: the slot is that of the PCI device above it
		text, err = os.ReadFile(filepath.Join(filepath.Dir(device), "numa_node"))
	}
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || node < 0 {
		return -1
	}
	return node
}
