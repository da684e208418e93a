package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// TestApplyWriteBack: a volume that writes back and is added while the server
// runs loses nothing when that is killed, and one that is removed leaves all of
// its data in its file and nothing in the note of the segment.
func TestApplyWriteBack(t *testing.T) {
	w := newWriteBack(t)
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	const added = "added: {type: file, path: added.img, size: 32MiB, write: back, cache: {flush-age: 1h}}"
	writeFile(t, w.config, strings.NewReplacer("volumes: {", "volumes: {"+added+", ", "luns: {0: back}", "luns: {0: back, 1: added}").Replace(string(text)))
	more := filepath.Join(w.dir, "more.yaml")
	if err := os.Rename(w.config, more); err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.config, string(text))
	apply := func(file string, want ...string) {
		t.Helper()
		var out, log eventually.Output
		if status := run(t.Context(), []string{"apply", file, "--yes", "--state-dir", w.dir}, cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
			t.Fatalf("apply ended with %d: %s", status, log.String())
		}
		for _, word := range want {
			if !strings.Contains(out.String(), word) {
				t.Errorf("found no %q in\n%s", word, out.String())
			}
		}
	}
	write := func(c *initiator.Conn, round int) {
		t.Helper()
		for i := range 8 {
			transfer(t, c, cdb10(0x2a, lbaOf(i)), 1, pattern(i, round), 0)
		}
	}

	first := serveChild(t, w.args()...)
	c := w.dial(t, first.portal)
	apply(more, "volumes.added: new")
	settle(t, c, 0)
	settle(t, c, 1)
	write(c, 1)
	if err := first.end(t, syscall.SIGKILL); err == nil {
		t.Error("the server was not killed")
	}

	if err := os.Rename(more, w.config); err != nil {
		t.Fatal(err)
	}
	second := serveChild(t, w.args()...)
	c = w.dial(t, second.portal)
	settle(t, c, 1)
	for i := range 8 {
		if got := transfer(t, c, cdb10(0x28, lbaOf(i)), 1, nil, 64<<10); !bytes.Equal(got, pattern(i, 1)) {
			t.Fatalf("extent %d is not what was acknowledged before the crash", i)
		}
	}
	write(c, 2)
	writeFile(t, more, string(text))
	apply(more, "volumes.added: removed")
	data, err := os.ReadFile(filepath.Join(w.dir, "added.img"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		if at := int(lbaOf(i)) * 512; !bytes.Equal(data[at:at+64<<10], pattern(i, 2)) {
			t.Errorf("extent %d of the file is not what was acknowledged", i)
		}
	}
	note, err := os.ReadFile(filepath.Join(w.dir, "segment.note"))
	if err != nil || !strings.Contains(string(note), "back.img") || strings.Contains(string(note), "added.img") {
		t.Errorf("found the note %q, %v, expected the volume that is left", note, err)
	}
	settle(t, c, 0)
	logout(t, c)
	if err := second.end(t, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
