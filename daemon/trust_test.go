package daemon

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// unlocked is the line of the lock file, whose time changes.
var unlocked = regexp.MustCompile(`(?m)^\S*/tgtd\.lock .*\n`)

// TestOthersMayChange: a start is refused, with the command that helps and without a
// trace, when others may change the state directory, something of the server's in it,
// the configuration, or a directory that leads there. Links of administrators are
// followed, and sticky directories such as /tmp are enough above.
func TestOthersMayChange(t *testing.T) {
	const config = "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes: {v: {type: ram, size: 1MiB}}\ntargets: {\"iqn.2026-11.test:t\": {luns: {0: v}}}\n"
	for name, test := range map[string]struct {
		path string // below the site, whose mode is changed
		mode os.FileMode
		mend string // in the message; empty: it starts
	}{
		"state directory":          {"site/state", 0o777, "chmod o-w "},
		"state directory, sticky":  {"site/state", 0o777 | os.ModeSticky, "chmod o-w "},
		"above it":                 {"site", 0o777, "chmod o-w "},
		"above it, sticky":         {"site", 0o777 | os.ModeSticky, ""},
		"identity":                 {"site/state/identity", 0o666, "chmod o-w "},
		"directory of the state":   {"site/state/.kept", 0o777, "chmod o-w "},
		"one that is elsewhere":    {"moved/stores", 0o777, "chmod o-w "},
		"something in that":        {"moved/stores/v.json", 0o666, "chmod o-w "},
		"above it, elsewhere":      {"moved", 0o777, "chmod o-w "},
		"configuration":            {"etc/tgtd.yaml", 0o666, "chmod o-w "},
		"directory of that":        {"etc", 0o777, "chmod o-w "},
		"readable configuration":   {"etc/tgtd.yaml", 0o644, ""},
		"another file of the user": {"site/state/notes", 0o666, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, dir := range []string{"site", "site/state", "site/state/.kept", "etc", "moved", "moved/stores"} {
				if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			writeFile(t, filepath.Join(root, "etc/tgtd.yaml"), config)
			writeFile(t, filepath.Join(root, "site/state/notes"), "")
			writeFile(t, filepath.Join(root, "moved/stores/v.json"), "")
			for to, at := range map[string]string{"site/state": "state", "../../moved/stores": "site/state/stores", "etc/tgtd.yaml": "tgtd.yaml"} {
				if err := os.Symlink(to, filepath.Join(root, at)); err != nil {
					t.Fatal(err)
				}
			}
			ended, end := context.WithCancel(t.Context()) // a server that starts stops at once
			end()
			var log eventually.Output
			serve := func() int {
				return run(ended, []string{"serve", "--state-dir", filepath.Join(root, "state"), "-c", filepath.Join(root, "tgtd.yaml")}, cli.Console{Out: &log, Err: &log})
			}
			if status := serve(); status != cli.ExitOK { // so that all files are there
				t.Fatalf("found status %d and %s", status, &log)
			}
			at := filepath.Join(root, test.path)
			if err := os.Chmod(at, test.mode); err != nil {
				t.Fatal(err)
			}
			kept := func() string { return unlocked.ReplaceAllString(contentsOf(t, filepath.Join(root, "site")), "") }
			before := kept()
			switch status := serve(); {
			case test.mend == "" && status != cli.ExitOK:
				t.Errorf("found status %d and %s", status, &log)
			case test.mend == "":
			case status == cli.ExitOK || !strings.Contains(log.String(), test.mend) || !strings.Contains(log.String(), filepath.Base(at)+")"):
				t.Errorf("found status %d and %s", status, &log)
			case kept() != before:
				t.Errorf("found %s, expected %s", kept(), before)
			}
		})
	}
}

// TestClaimPlanted: the lock file is nobody else's file under another name, which
// taking the claim would empty.
func TestClaimPlanted(t *testing.T) {
	for name, plant := range map[string]func(string, string) error{"hard link": os.Link, "symbolic link": os.Symlink} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		writeFile(t, victim, "precious")
		if err := plant(victim, filepath.Join(dir, state.ClaimName)); err != nil {
			t.Fatal(err)
		}
		if held, err := state.Take(dir); err == nil {
			t.Errorf("%s: it was taken", name)
			held.Release()
		}
		if text, err := os.ReadFile(victim); string(text) != "precious" {
			t.Errorf("%s: found %q, %v", name, text, err)
		}
	}
}
