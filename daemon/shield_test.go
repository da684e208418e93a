package daemon

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// TestProtectionInformationIsKnown: a volume whose protection information is gone, or
// another volume's, is not served, and nothing is changed; a new volume gets some.
func TestProtectionInformationIsKnown(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {a: {type: file, path: a, size: 1MiB, protection: 1}, b: {type: file, path: b, size: 1MiB, protection: 1}}
targets: {"iqn.2026-11.test:t": {luns: {0: a, 1: b}}}
`)
	s := serve(t, "-c", config, "--state-dir", dir)
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	transfer(t, c, cdb10(0x2a, 0), 0, pattern(1, 1), 0)
	logout(t, c)
	if s.stop() != cli.ExitOK {
		t.Fatalf("%s", s.log)
	}
	pi := filepath.Join(dir, "a.pi")
	mine, err := os.ReadFile(pi)
	if err != nil {
		t.Fatal(err)
	}
	others, err := os.ReadFile(filepath.Join(dir, "b.pi"))
	if err != nil {
		t.Fatal(err)
	}
	notes, err := filepath.Glob(filepath.Join(dir, "protection", "a-*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("found %v, %v, expected a note", notes, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	start := func() (int, string) {
		var log eventually.Output
		status := run(ended, []string{"serve", "-c", config, "--state-dir", dir}, cli.Console{Out: io.Discard, Err: &log})
		return status, log.String()
	}
	for name, put := range map[string]func(){
		"gone":      func() { os.Remove(pi) },
		"empty":     func() { writeFile(t, pi, "") },
		"zeroes":    func() { writeFile(t, pi, strings.Repeat("\x00", len(mine))) },
		"another's": func() { writeFile(t, pi, string(others)) },
	} {
		put()
		check := asTheyWere(t, dir)
		status, log := start()
		if status != cli.ExitFailure || !strings.Contains(log, "volume a") || !strings.Contains(log, pi) || !strings.Contains(log, notes[0]) {
			t.Errorf("%s: found status %d and %s", name, status, log)
		}
		check()
	}
	writeFile(t, pi, string(mine))
	if status, log := start(); status != cli.ExitOK {
		t.Errorf("put back: %d\n%s", status, log)
	}
	os.Remove(pi)
	os.Remove(notes[0])
	os.Remove(filepath.Join(dir, state.MarkDir, "protection", filepath.Base(notes[0])))
	if status, log := start(); status != cli.ExitOK {
		t.Errorf("given up: %d\n%s", status, log)
	}
}
