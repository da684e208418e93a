package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// mapping is one that was asked of a node.
type mapping struct {
	start, end uint64 // addresses
	node       int
	kind       string // "anonymous" or the path of its file
}

// placed returns the mappings of a process that have a policy for one node.
// numa_maps knows the policies, maps the lengths.
func placed(pid int) ([]mapping, error) {
	policies, err := os.ReadFile(fmt.Sprintf("/proc/%d/numa_maps", pid))
	if err != nil {
		return nil, err
	}
	ranges, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	return join(string(policies), string(ranges)), nil
}

// join finds the length of each mapping of numa_maps that is for one node.
func join(policies, ranges string) []mapping {
	ends := map[uint64]uint64{}
	for line := range strings.Lines(ranges) {
		first, rest, _ := strings.Cut(line, "-")
		last, _, _ := strings.Cut(rest, " ")
		ends[address(first)] = address(last)
	}
	var found []mapping
	for line := range strings.Lines(policies) {
		if m, ok := parse(line); ok && ends[m.start] > m.start {
			m.end = ends[m.start]
			found = append(found, m)
		}
	}
	return found
}

// parse reads "7f00 prefer:1 file=/x anon=1 N0=3"; ok if the policy names a node.
func parse(line string) (m mapping, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return m, false
	}
	_, node, _ := strings.Cut(fields[1], ":")
	n, err := strconv.Atoi(node)
	if err != nil {
		return m, false
	}
	m = mapping{start: address(fields[0]), node: n, kind: "anonymous"}
	for _, field := range fields[2:] {
		if path, isFile := strings.CutPrefix(field, "file="); isFile {
			m.kind = path
		}
	}
	return m, true
}

// address parses a hexadecimal number; 0, which no mapping has, if it is none.
func address(text string) uint64 {
	n, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// pages counts pages by node; the key -1 is for those that do not exist.
type pages map[int]int

// astray reports whether any page is not on the node.
func (p pages) astray(node int) bool { return len(p) != 1 || p[node] == 0 }

// String lists the counts, "3 on node 0".
func (p pages) String() string {
	var b strings.Builder
	writeCounts(&b, p)
	return b.String()
}

func writeCounts(w io.Writer, p pages) {
	for node := -1; node < maxNodes; node++ {
		switch {
		case p[node] == 0:
		case node < 0:
			fmt.Fprintf(w, "%d missing ", p[node])
		default:
			fmt.Fprintf(w, "%d on node %d ", p[node], node)
		}
	}
}
