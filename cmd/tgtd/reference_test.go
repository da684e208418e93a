package main

import (
	"flag"
	"os"
	"testing"

	"lunar/internal/cli"
)

var update = flag.Bool("update", false, "write docs/commands.md anew")

// TestReference: docs/commands.md has the commands and flags as they are.
func TestReference(t *testing.T) {
	const path = "../../docs/commands.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, ok := cli.Replaced(string(text), "tgtd", program().Reference())
	if !ok {
		t.Fatalf("%s has not both marks", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is stale: go test ./cmd/tgtd -run TestReference -update writes it anew", path)
	}
}
