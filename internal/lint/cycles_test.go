package lint

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"lunar/internal/lint/structure"
)

const (
	// wallLines is from where a package needs walls inside: a smaller one is a room.
	wallLines = 1000
	// wallShare is the percentage of its lines that may be in one cycle of files.
	wallShare = 50
	// cycleLimits has the packages whose largest cycle is larger, and by how much it may be.
	cycleLimits = "testdata/cycles.txt"
)

// TestFileCycles: no cycle of files has more than half of a large package's lines, or
// more than testdata/cycles.txt allows it. What that allows only becomes less: -update
// writes down what has shrunk.
func TestFileCycles(t *testing.T) {
	var all []structure.Package
	for _, module := range modules {
		tree, err := structure.Load(module, "./...")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tree.Measure()...)
	}
	limits, kept := readLimits(t), map[string]int{}
	for _, p := range all {
		path, share := strings.TrimPrefix(p.Path, "lunar/"), int(math.Ceil(p.Share()))
		limit, listed := limits[path]
		if p.Lines <= wallLines || share <= wallShare {
			continue
		}
		if !listed {
			limit = wallShare
		}
		if share > limit {
			t.Errorf("%s: %.1f %% of its lines are in one cycle of %d files, expected at most %d %%: let files use each other in one direction; a package that was only moved takes its row in %s along", path, p.Share(), p.CycleFiles, limit, cycleLimits)
		}
		kept[path] = min(share, limit)
	}
	if *update {
		writeLimits(t, kept)
	}
}

func readLimits(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile(cycleLimits)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var path string
		var limit int
		if _, err := fmt.Sscan(line, &path, &limit); err != nil {
			t.Fatalf("%s: %q: %v", cycleLimits, line, err)
		}
		limits[path] = limit
	}
	return limits
}

func writeLimits(t *testing.T, limits map[string]int) {
	t.Helper()
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(limits)) {
		if limits[path] > wallShare {
			fmt.Fprintln(&text, path, limits[path])
		}
	}
	if err := os.WriteFile(cycleLimits, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
