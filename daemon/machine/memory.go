package machine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// UsableMemory returns the bytes of memory that this process may use: the
// machine's, or less where a cgroup bounds it. Other than free memory it is the
// same after a restart, so that a share of it is again the same cache. root is
// "/" but in tests.
func UsableMemory(root string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, fmt.Errorf("memory of this machine: %w", err)
	}
	var total int64
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			total, _ = strconv.ParseInt(fields[1], 10, 53) // 0 on error
		}
	}
	if total <= 0 {
		return 0, fmt.Errorf("memory of this machine: found no MemTotal in /proc/meminfo, expected its KiB")
	}
	return min(total<<10, cgroupLimit(root)), nil
}

// cgroupLimit returns the smallest limit of the cgroups that this process is in.
func cgroupLimit(root string) int64 {
	limit := int64(math.MaxInt64)
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit // a kernel without cgroups
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch controllers {
		case "": // version 2
			limit = min(limit, smallest(filepath.Join(root, "sys/fs/cgroup"), group, "memory.max"))
		case "memory": // version 1
			limit = min(limit, smallest(filepath.Join(root, "sys/fs/cgroup/memory"), group, "memory.limit_in_bytes"))
		}
	}
	return limit
}

// smallest returns the least number in the files of that name in group and all
// above it. Files that are missing, as in a container that sees only its own
// group, and "max" count as no limit.
func smallest(top, group, name string) int64 {
	limit := int64(math.MaxInt64)
	for at := filepath.Clean("/" + group); ; at = filepath.Dir(at) {
		if text, err := os.ReadFile(filepath.Join(top, at, name)); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
				limit = min(limit, n)
			}
		}
		if at == "/" {
			return limit
		}
	}
}
