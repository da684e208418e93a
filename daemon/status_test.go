package daemon

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestStatusFails: without a server, and with contradicting flags, it is said
// what to do.
func TestStatusFails(t *testing.T) {
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--state-dir", t.TempDir()}, cli.ExitUnreachable, "tgtd serve"},
		{[]string{"--socket", filepath.Join(t.TempDir(), "sock")}, cli.ExitUnreachable, "--socket"},
		{[]string{"--server", "http://127.0.0.1:1"}, cli.ExitUsage, "expected https://host:port"},
		{[]string{"--server", "https://:1"}, cli.ExitUsage, "expected https://host:port"},
		{[]string{"--server", "https://127.0.0.1:1", "--socket", "s"}, cli.ExitUsage, "one of them"},
		{[]string{"--server", "https://127.0.0.1:1", "--token-file", "/nowhere"}, cli.ExitFailure, "/nowhere"},
		{[]string{"--server", "https://127.0.0.1:1"}, cli.ExitUnreachable, "no answer"},
		{[]string{"--json", "--watch"}, cli.ExitUsage, "one of them"},
		{[]string{"--json", "-o", "yaml"}, cli.ExitUsage, "one of them"},
		{[]string{"-o", "xml"}, cli.ExitUsage, "must be one of"},
	} {
		var out, err eventually.Output
		if status := run(context.Background(), append([]string{"status"}, test.args...), cli.Console{Out: &out, Err: &err}); status != test.status || !strings.Contains(err.String(), test.want) {
			t.Errorf("%q: found exit status %d, %s", test.args, status, err.String())
		}
	}
}
