package daemon

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// namesIn lists what is below directories.
func namesIn(t *testing.T, dirs ...string) (names string) {
	t.Helper()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			names += path + "\n"
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// TestFailedStartLeavesNoFile: whatever a start has made before it failed is gone, and
// what was there is not.
func TestFailedStartLeavesNoFile(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir, memory := t.TempDir(), memoryDir(t)
	state, key, config := filepath.Join(dir, "new", "state"), filepath.Join(dir, "key"), filepath.Join(dir, "tgtd.yaml")
	writeFile(t, key, strings.Repeat("5a", 32))
	configure := func(listen, volumes string) {
		writeFile(t, config, fmt.Sprintf(`
server: {threads: 1, buffers-per-thread: 8MiB}
cache: {size: 16MiB, segment: %s/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}, b: {tag: 2, listen: [%q]}}
volumes:
  plain: {type: file, path: plain.img, size: 1MiB, write: back, cache: true}
  whole: {type: file, path: whole.img, size: 1MiB, protection: 1, encryption: {key-file: %s}}
  %s
targets: {"iqn.2026-11.test:t": {portal-groups: [a, b], luns: {0: plain, 1: whole, 2: other}}}
`, memory, listen, key, volumes))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	start := func(args ...string) (int, string) {
		var log eventually.Output
		status := run(ended, append([]string{"serve", "-c", config, "--state-dir", state, "--yes"}, args...), cli.Console{Out: io.Discard, Err: &log})
		return status, log.String()
	}
	const other = "other: {type: file, path: other.img, size: 2MiB, protection: 1}"
	failures := func() {
		t.Helper()
		for name, fail := range map[string]func() (int, string){
			"port in use": func() (int, string) { configure(taken.Addr().String(), other); return start() },
			"broken":      func() (int, string) { configure("127.0.0.1:0", "other: {type: what}"); return start() },
			"no such place": func() (int, string) {
				configure("127.0.0.1:0", "other: {type: file, path: no/such/other.img, size: 1MiB}")
				return start()
			},
			"no key": func() (int, string) {
				configure("127.0.0.1:0", "other: {type: file, path: other.img, size: 1MiB, encryption: {key-file: /no/such/key}}")
				return start()
			},
			"socket": func() (int, string) {
				configure("127.0.0.1:0", other)
				return start("--socket", "/"+strings.Repeat("x", 200))
			},
		} {
			writeFile(t, config, "")
			before := namesIn(t, dir, memory)
			if status, log := fail(); status != cli.ExitFailure {
				t.Errorf("%s: status %d\n%s", name, status, log)
			}
			if after := namesIn(t, dir, memory); after != before {
				t.Errorf("%s: found\n%s, expected\n%s", name, after, before)
			}
		}
	}
	failures()
	configure("127.0.0.1:0", "other: {type: ram, size: 1MiB}")
	if status, log := start(); status != cli.ExitOK {
		t.Fatalf("status %d\n%s", status, log)
	}
	if _, err := os.Stat(filepath.Join(state, "whole.img.header")); err != nil {
		t.Fatal(err)
	}
	failures()
}

// TestFailedStartKeepsData: a file that somebody has written to, or has locked, is not
// one that a failed start may remove.
func TestFailedStartKeepsData(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, "x")
	held, err := os.OpenFile(filepath.Join(dir, "held"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := state.LockFile(held, held.Name()); err != nil {
		t.Fatal(err)
	}
	blank := func(string) (bool, error) { return false, nil }
	if gone, err := medium.RemoveUnused(config, blank); gone || err != nil {
		t.Errorf("a file with data: %v, %v", gone, err)
	}
	if gone, err := medium.RemoveUnused(held.Name(), nil); gone || err != nil {
		t.Errorf("a file that is locked: %v, %v", gone, err)
	}
	if got := namesIn(t, dir); !strings.Contains(got, "held") || !strings.Contains(got, "tgtd.yaml") {
		t.Errorf("found %s", got)
	}
}

// TestFailedApplyLeavesNoFile: what a refused change has made is gone.
func TestFailedApplyLeavesNoFile(t *testing.T) {
	l := serveVolumes(t)
	key := filepath.Join(l.dir, "key")
	writeFile(t, key, strings.Repeat("5a", 32))
	writeFile(t, filepath.Join(l.dir, "blank.img"), strings.Repeat("\x00", 1<<20))
	more := fmt.Sprintf(`volumes:
  whole: {type: file, path: whole.img, size: 1MiB, protection: 1, encryption: {key-file: %[1]s}}
  blank: {type: file, path: blank.img, protection: 1, encryption: {key-file: %[1]s}}
  lost: {type: file, path: no/such/file.img, size: 1MiB}
`, key)
	files := func() (names []string) { // intent logs and directories stay: they decide nothing
		for _, name := range strings.Fields(namesIn(t, l.dir)) {
			if info, err := os.Lstat(name); err == nil && !info.IsDir() && filepath.Ext(name) != ".log" {
				names = append(names, name)
			}
		}
		return names
	}
	before := files()
	l.apply(cli.ExitFailure, []string{"volumes:\n", more}, "no/such/file.img")
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("found\n%s, expected\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}
