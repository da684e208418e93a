// Package arenatest asks the kernel where pages lie, for tests of what places them.
package arenatest

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Placement says where pages are.
type Placement struct {
	Pages   map[int]int // pages by the kernel's number of the node
	Missing int         // pages that do not exist yet or could not be asked for
}

// On returns the share of existing pages that are on the node, 0 to 1.
func (p Placement) On(node int) float64 {
	total := 0
	for _, n := range p.Pages {
		total += n
	}
	if total == 0 {
		return 0
	}
	return float64(p.Pages[node]) / float64(total)
}

// query is how many pages move_pages is asked for at once.
const query = 4096

// Placed asks the kernel (move_pages without a destination) for the node of
// every page of mem, which begins at a page; a huge page counts as the usual
// pages that it covers. Containers may forbid it: then the error is EPERM or
// ENOSYS.
func Placed(mem []byte) (Placement, error) {
	placed := Placement{Pages: map[int]int{}}
	page := os.Getpagesize()
	var at [query]uintptr
	var nodes [query]int32
	for first := 0; first < len(mem); first += query * page {
		n := 0
		for i := first; i < len(mem) && n < query; i += page {
			at[n] = uintptr(unsafe.Pointer(&mem[i]))
			n++
		}
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, 0, uintptr(n), uintptr(unsafe.Pointer(&at)), 0, uintptr(unsafe.Pointer(&nodes)), 0)
		if errno != 0 {
			return placed, fmt.Errorf("arena: move_pages of %d pages: %w", n, errno)
		}
		placed.add(nodes[:n])
	}
	return placed, nil
}

// add counts nodes; negative ones are error numbers of pages.
func (p *Placement) add(nodes []int32) {
	for _, node := range nodes {
		if node < 0 {
			p.Missing++
			continue
		}
		p.Pages[int(node)]++
	}
}

// Mapping is a line of /proc/PID/numa_maps.
type Mapping struct {
	Start  uintptr
	Policy string // such as "default" or "prefer:1"
	Pages  map[int]int
	Page   int64 // bytes of a page
	Huge   bool  // reserved huge pages
	File   string
}

// Mapped returns what /proc/self/numa_maps says of the mapping that begins at
// mem, which is the whole of a bound mapping.
func Mapped(mem []byte) (Mapping, error) {
	f, err := os.Open("/proc/self/numa_maps")
	if err != nil {
		return Mapping{}, fmt.Errorf("arena: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return Mapping{}, fmt.Errorf("arena: %w", err)
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	for line := range strings.Lines(string(text)) {
		if m, ok := parseMapping(line); ok && m.Start == start {
			return m, nil
		}
	}
	return Mapping{}, fmt.Errorf("arena: numa_maps has no mapping at %#x", start)
}

// parseMapping parses "7f00 prefer:1 file=/x huge anon=1 N0=3 kernelpagesize_kB=4".
func parseMapping(line string) (Mapping, bool) {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return Mapping{}, false
	}
	start, err := strconv.ParseUint(fields[0], 16, 64)
	if err != nil {
		return Mapping{}, false
	}
	m := Mapping{Start: uintptr(start), Policy: fields[1], Pages: map[int]int{}}
	for _, field := range fields[2:] {
		name, value, _ := strings.Cut(field, "=")
		m.set(name, value)
	}
	return m, true
}

func (m *Mapping) set(name, value string) {
	n, err := strconv.ParseInt(value, 10, 53)
	switch node, isNode := strings.CutPrefix(name, "N"); {
	case name == "file":
		m.File = value
	case name == "huge":
		m.Huge = true
	case err != nil:
	case name == "kernelpagesize_kB":
		m.Page = n << 10
	case isNode:
		if id, err := strconv.Atoi(node); err == nil {
			m.Pages[id] = int(n)
		}
	}
}
