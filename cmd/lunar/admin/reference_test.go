package admin

import (
	"os"
	"testing"

	"lunar/internal/cli"
)

// TestReference: docs/commands.md has the commands, flags and exit statuses as they are.
func TestReference(t *testing.T) {
	const path = "../../../docs/commands.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, ok1 := cli.Replaced(string(text), "lunar", Program().Reference())
	want, ok2 := cli.Replaced(want, "exit statuses", cli.ReferenceStatuses())
	if !ok1 || !ok2 {
		t.Fatalf("%s has not all of its marks", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is stale: go test ./cmd/lunar/admin -run TestReference -update writes it anew", path)
	}
}
