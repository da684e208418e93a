// Package quickstart tests the script that is the quick start.
package quickstart

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuickStart: the script of docs/install.md runs to its end with the programs of this tree.
func TestQuickStart(t *testing.T) {
	bin := t.TempDir()
	for _, program := range []string{"tgtd", "lunar"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, program), "./cmd/"+program)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	out, err := exec.Command("./quickstart.sh", bin).CombinedOutput()
	text := string(out)
	if err != nil || !strings.HasSuffix(text, "done\n") {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{"tgtd.yaml: ok: 1 target, 1 volume", "ok: 1 volume, no session", "would be admitted to iqn.2026-11.example.san:disk", "user hosts/host1: would be admitted", "volumes.more: new", "iscsiadm -m discovery"} {
		if !strings.Contains(text, want) {
			t.Errorf("found no %q in\n%s", want, text)
		}
	}
}
