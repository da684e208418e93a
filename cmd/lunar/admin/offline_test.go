package admin

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// TestWithoutServer: commands that ask no server, and mistakes for which none is asked.
func TestWithoutServer(t *testing.T) {
	dir := t.TempDir()
	there, tokens, tgt := filepath.Join(dir, "there"), filepath.Join(dir, "tokens"), filepath.Join(dir, "targets.conf")
	for path, text := range map[string]string{there: "mine", tgt: "<target iqn.2026-11.test:t>\nbacking-store /there\n</target>\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"apply"}, cli.ExitUsage, "lunar: found no configuration file, expected one: lunar apply FILE"},
		{[]string{"apply", there, "-c", there}, cli.ExitUsage, "lunar: found two configuration files"},
		{[]string{"import", "tgt", tgt, "-o", there}, cli.ExitFailure, "lunar: " + there + ": found a file, expected none"},
		{[]string{"token", "create", tokens, "prometheus", "--role", "read"}, cli.ExitOK, ""},
		{[]string{"token", "list", tokens}, cli.ExitOK, "NAME        ROLE\nprometheus  read\n"},
	} {
		var out bytes.Buffer
		if status := Run(t.Context(), c.args, cli.Console{Out: &out, Err: &out}); status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: found status %d and %s", c.args[:2], status, out.String())
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "mine" {
		t.Errorf("found %q, %v", text, err)
	}
}
