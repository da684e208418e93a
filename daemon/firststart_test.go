package daemon

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestFirstStartSyncs: what a start makes for new volumes is made stable together: the
// number of syncs does not depend on theirs, and a start with volumes that are there makes
// fewer still.
func TestFirstStartSyncs(t *testing.T) {
	// start counts the syncs of a start with so many volumes.
	start := func(dir string, volumes int) int {
		var config strings.Builder
		config.WriteString("server: {threads: 1, buffers-per-thread: 4MiB}\nportal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes:\n")
		for i := range volumes {
			fmt.Fprintf(&config, "  v%d: {type: file, path: %s/v%d.img, size: 1MiB}\n", i, dir, i)
		}
		config.WriteString("targets: {\"iqn.2026-11.test:t\": {luns: {0: v0}}}\n")
		text := serveTraced(t, dir, config.String(), "-e trace=fsync,fdatasync,syncfs,sync,sync_file_range").kill(t)
		return len(regexp.MustCompile(`(?m)^\d+ +(f|sync)[a-z_]*\(`).FindAllString(text, -1))
	}
	few, many := t.TempDir(), t.TempDir()
	with10, with40 := start(few, 10), start(many, 40)
	if with10 != with40 || with10 == 0 {
		t.Errorf("found %d syncs with 10 volumes and %d with 40, expected as many", with10, with40)
	}
	if again := start(many, 40); again >= with40 {
		t.Errorf("found %d syncs of a start that had nothing to make, expected fewer than %d", again, with40)
	}
}
