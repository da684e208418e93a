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
		args []string
		want string
	}{
		{[]string{"--state-dir", t.TempDir()}, "tgtd serve"},
		{[]string{"--socket", filepath.Join(t.TempDir(), "sock")}, "--socket"},
		{[]string{"--json", "--watch"}, "one of them"},
	} {
		var out, err eventually.Output
		if status := run(context.Background(), append([]string{"status"}, test.args...), cli.Console{Out: &out, Err: &err}); status != cli.ExitFailure || !strings.Contains(err.String(), test.want) {
			t.Errorf("%q: found exit status %d, %s", test.args, status, err.String())
		}
	}
}
