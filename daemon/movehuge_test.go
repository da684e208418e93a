package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// TestMoveHuge: a volume whose digests do not fit into memory is refused with the reason, and the
// server goes on.
func TestMoveHuge(t *testing.T) {
	e := &endpoint{serveObjects(t, "portal-groups: {a: {listen: ['127.0.0.1:0']}}\nvolumes: {huge: {type: 'null', size: 1048576TiB}}\n"), freePort(t)}
	other := &endpoint{serveObjects(t, "portal-groups: {a: {listen: ['127.0.0.1:0']}}\n"), freePort(t)}
	key := filepath.Join(e.dir, "key")
	other.receiving(key)
	for _, args := range [][]string{
		{"checksum", "huge"},
		{"send", "huge", other.at, "--key-file", key},
		{"send", "huge", other.at, "--key-file", key, "--incremental"},
	} {
		if out, status := e.lunar(append([]string{"volume"}, args...)...); status == cli.ExitOK || !strings.Contains(out, "of memory for its digests") {
			t.Errorf("%v: found %d, %q", args, status, out)
		}
	}
	if len(e.status().Volumes) != 1 {
		t.Error("the server does not serve any more")
	}
}
