package daemon

import (
	"bytes"
	"os"
	"testing"

	"lunar/daemon/state"
)

// TestStrangeIdentity: a file that is none is refused in a line that does not quote it.
func TestStrangeIdentity(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(state.IdentityFile(dir).Path(), bytes.Repeat([]byte{0xff}, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := state.ReadIdentity(dir); err == nil || len(err.Error()) > 1024 {
		t.Errorf("found %.1000v, expected a refusal of at most 1024 characters", err)
	}
}

// TestStrangeNote: the same of the note of the cache segment.
func TestStrangeNote(t *testing.T) {
	for _, text := range []string{"1 \"a\"\n", "strange "} {
		n := state.SegmentNote{StateDir: t.TempDir()}
		if err := os.WriteFile(n.File().Path(), bytes.Repeat([]byte(text), 1<<17), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := state.ReadSegmentNote(n.StateDir); err == nil || len(err.Error()) > 1500 {
			t.Errorf("found %.2000v, expected a refusal of at most 1500 characters", err)
		}
	}
}
