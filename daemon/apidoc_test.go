package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPIExamples: every example of docs/api.md does what it says, in their order. Blocks that
// do not begin with api are answers, or need a server elsewhere.
func TestAPIExamples(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	o := serveObjects(t, objectsConfig)
	var script strings.Builder
	script.WriteString("set -eu\n")
	runs, within := false, false
	for _, line := range strings.Split(string(text), "\n") {
		code, ok := strings.CutPrefix(line, "    ")
		if ok && !within {
			runs = strings.HasPrefix(code, "api")
		}
		if within = ok; ok && runs {
			script.WriteString(code + "\n")
		}
	}
	command := strings.ReplaceAll(script.String(), "/var/lib/lunar", o.dir)
	if n := strings.Count(command, "\napi "); n < 12 {
		t.Fatalf("found %d examples", n)
	}
	path := filepath.Join(o.dir, "examples.sh")
	writeFile(t, path, command)
	out, err := exec.CommandContext(t.Context(), "sh", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if strings.Contains(string(out), "at least 12 bytes") || strings.Contains(string(out), "another secret") {
		t.Errorf("a secret is shown:\n%s", out)
	}
	if !strings.Contains(string(out), "Written to "+o.file) {
		t.Errorf("found\n%s", out)
	}
}
