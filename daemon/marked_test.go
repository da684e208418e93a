package daemon

import (
	"context"
	"errors"
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

// TestLostFiles: a file that is gone is not taken for one that never was, whatever it
// decides; a crash between file and mark costs nothing; and a file can be given up.
func TestLostFiles(t *testing.T) {
	for _, d := range deciders(t) {
		if got, err := d.load(); err != nil || d.Kind != state.IdentityKind && got != "" && d.Kind != state.NoteKind {
			t.Fatalf("%s: found %q, %v, expected nothing", d.Kind, got, err)
		}
		for _, how := range []string{"written", "of before", "made by a crash"} {
			writeFile(t, d.Path(), d.old)
			if err := os.RemoveAll(filepath.Dir(string(d.Mark()))); err != nil {
				t.Fatal(err)
			}
			first, err := d.load()
			if how == "made by a crash" {
				os.Remove(string(d.Mark()))
				_, err = d.load()
			}
			if err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(d.Path())
			if err != nil {
				t.Fatal(err)
			}
			os.Remove(d.Path())
			for range 2 {
				if got, err := d.load(); err == nil || !errors.Is(err, state.ErrLost) || !strings.Contains(err.Error(), d.Path()) {
					t.Fatalf("%s, %s: found %q, %v, expected that the file is missed", d.Kind, how, got, err)
				}
			}
			writeFile(t, d.Path(), string(whole))
			if got, err := d.load(); err != nil || got != first {
				t.Errorf("%s, put back: found %q, %v", d.Kind, got, err)
			}
		}
		os.Remove(d.Path())
		os.Remove(string(d.Mark()))
		if _, err := d.load(); err != nil {
			t.Errorf("%s, given up: %v", d.Kind, err)
		}
		if err := d.Remove(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.load(); err != nil {
			t.Errorf("%s, removed: %v", d.Kind, err)
		}
	}
}

// TestLostFilesKeepFromServing: each small file that a server has written is missed by
// the next start.
func TestLostFilesKeepFromServing(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {a: {type: file, path: a, size: 1MiB, protection: 1}}
targets: {"iqn.2026-11.test:t": {luns: {0: a}}}
`)
	s := serve(t, "-c", config, "--state-dir", dir)
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	if err := (&registrant{Conn: c}).register(1); err != nil {
		t.Fatal(err)
	}
	logout(t, c)
	if s.stop() != cli.ExitOK {
		t.Fatalf("%s", s.log)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	start := func() (int, string) {
		var log eventually.Output
		status := run(ended, []string{"serve", "-c", config, "--state-dir", dir}, cli.Console{Out: io.Discard, Err: &log})
		return status, log.String()
	}
	kinds := map[string]bool{}
	for _, name := range strings.Fields(namesIn(t, filepath.Join(dir, state.MarkDir))) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			continue
		}
		rel, err := filepath.Rel(filepath.Join(dir, state.MarkDir), name)
		if err != nil {
			t.Fatal(err)
		}
		kinds[strings.SplitN(rel, "/", 2)[0]] = true
		path := filepath.Join(dir, rel)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(path)
		check := asTheyWere(t, dir)
		if status, log := start(); status != cli.ExitFailure || !strings.Contains(log, path) || !strings.Contains(log, name) {
			t.Errorf("%s is gone: found status %d and %s", rel, status, log)
		}
		check()
		writeFile(t, path, string(whole))
		if status, log := start(); status != cli.ExitOK {
			t.Errorf("%s was put back: found status %d and %s", rel, status, log)
		}
	}
	for _, kind := range []string{"applied.json", "atomic", "identity", "protection", "reservations", "stores"} {
		if !kinds[kind] {
			t.Errorf("%s has no mark", kind)
		}
	}
}
