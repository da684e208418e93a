package arena

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lunar/internal/numa"
)

// Size is an amount of memory as the configuration gives it: bytes, or a share
// of what a node has.
type Size struct {
	Bytes   int64
	Percent float64 // 0 unless the size is relative; then Bytes is 0
}

// units of ParseSize, longest first, so that a suffix is found whole.
var units = []struct {
	name string
	unit float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseSize parses "4GiB", "1.5GB", "1048576" or "50%".
func ParseSize(text string) (Size, error) {
	trimmed := strings.TrimSpace(text)
	if number, ok := strings.CutSuffix(trimmed, "%"); ok {
		percent, err := parseNumber(number)
		if err != nil || percent <= 0 || percent > 100 {
			return Size{}, fmt.Errorf("size %q: expected a share above 0%% and up to 100%%", text)
		}
		return Size{Percent: percent}, nil
	}
	for _, u := range units {
		number, ok := strings.CutSuffix(trimmed, u.name)
		if !ok {
			continue
		}
		n, err := parseNumber(number)
		if err != nil || n*u.unit < 1 || n*u.unit >= math.MaxInt64 {
			break
		}
		return Size{Bytes: int64(n * u.unit)}, nil
	}
	return Size{}, fmt.Errorf("size %q: expected bytes such as 4GiB or 512MiB, or a share such as 50%%", text)
}

// parseNumber parses plain decimals: no sign, no exponent, no words.
func parseNumber(text string) (float64, error) {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a decimal number", text)
	}
	return strconv.ParseFloat(text, 64)
}

// String returns what ParseSize parses.
func (s Size) String() string {
	if s.Percent != 0 {
		return strconv.FormatFloat(s.Percent, 'f', -1, 64) + "%"
	}
	return Bytes(s.Bytes)
}

// Bytes writes a number of bytes for people: "4 GiB", "1.5 MiB".
func Bytes(n int64) string {
	unit, name := int64(1), "bytes"
	for _, u := range []struct {
		unit int64
		name string
	}{{1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}} {
		if n >= u.unit {
			unit, name = u.unit, u.name
		}
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(unit), 'f', 1, 64), ".0") + " " + name
}

// Share is what one node is to give.
type Share struct {
	Node  int // as the topology numbers it
	Bytes int64
}

// Plan divides sizes over the nodes of a topology. A single size in bytes is the
// sum and is split evenly; a single percentage is taken of each node's own
// memory; otherwise there is one size per node, in the topology's order. Nodes
// without memory get nothing, unless they got a size of their own. Shares are
// multiples of unit, rounded down; it is an error if a share becomes 0, if a
// percentage is asked of a node whose memory is unknown, or if a share is more
// than the node has.
func Plan(sizes []Size, nodes []numa.Node, unit int64) ([]Share, error) {
	if len(sizes) != 1 && len(sizes) != len(nodes) {
		return nil, fmt.Errorf("%d sizes: expected one, or one for each of the %d NUMA nodes", len(sizes), len(nodes))
	}
	if len(sizes) == 1 {
		nodes = withMemory(nodes)
	}
	shares := make([]Share, 0, len(nodes))
	for i, node := range nodes {
		size, parts := sizes[0], int64(len(nodes))
		if len(sizes) > 1 {
			size, parts = sizes[i], 1
		}
		share, err := shareOf(size, parts, node, unit)
		if err != nil {
			return nil, err
		}
		shares = append(shares, share)
	}
	return shares, nil
}

// withMemory leaves out nodes without memory; where none is known to have any,
// all are kept.
func withMemory(nodes []numa.Node) []numa.Node {
	var some []numa.Node
	for _, n := range nodes {
		if n.MemoryBytes > 0 {
			some = append(some, n)
		}
	}
	if some == nil {
		return nodes
	}
	return some
}

func shareOf(size Size, parts int64, node numa.Node, unit int64) (Share, error) {
	want := size.Bytes / parts
	if size.Percent != 0 {
		if node.MemoryBytes == 0 {
			return Share{}, fmt.Errorf("%s of NUMA node %d: its memory is not known, expected a size in bytes", size, node.ID)
		}
		want = int64(float64(node.MemoryBytes) * size.Percent / 100)
	}
	want -= want % unit
	if want == 0 {
		return Share{}, fmt.Errorf("size %s: NUMA node %d would get less than the smallest unit of %s", size, node.ID, Bytes(unit))
	}
	if node.MemoryBytes > 0 && uint64(want) > node.MemoryBytes {
		return Share{}, fmt.Errorf("size %s: NUMA node %d would give %s, but has %s", size, node.ID, Bytes(want), Bytes(int64(node.MemoryBytes)))
	}
	return Share{node.ID, want}, nil
}
