package dist

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/conf"
)

// purged runs the step of a purge with a state directory of the test.
func purged(t *testing.T, state string) string {
	t.Helper()
	script, err := os.ReadFile("steps/postremove.sh")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.NewReplacer("/var/lib/lunar", state, "/dev/shm/lunar", t.TempDir(), "/run/systemd/system", t.TempDir()+"/none")
	out, err := exec.Command("sh", "-c", elsewhere.Replace(string(script)), "postremove", "purge").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestPurge: the server's notes go, of whatever version; what volumes need stays.
func TestPurge(t *testing.T) {
	needed := []string{"atomic", "etcd", "excess", "mirror", "protection", "reservations", "sanitize", "segment.note"}
	files := []string{"applied.json", "cluster-config.json", "cluster-identity.json", "control.sock", "identity", "naming.json", "pending.json", "segment.note", "tgtd.lock"}
	state := filepath.Join(t.TempDir(), "state")
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if !slices.Contains(files, name) {
				name += "/x.json"
			}
			path := filepath.Join(state, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	notes := slices.DeleteFunc(slices.Clone(conf.StateNames), func(name string) bool { return slices.Contains(needed, name) })
	put(notes...)
	said := purged(t, state)
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("notes alone: found %v, and %q", err, said)
	}
	for _, name := range needed {
		put(append(notes, name)...)
		said := purged(t, state)
		if _, err := os.Stat(state); err != nil || !strings.Contains(said, "kept") {
			t.Errorf("with %s: found %v, and %q", name, err, said)
		}
		os.RemoveAll(state)
	}
}
