package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/eventually"
)

// TestTrail: each change is a line of the file, also after the file was taken away; what
// cannot be written is counted and told, and holds nobody up.
func TestTrail(t *testing.T) {
	var log bytes.Buffer
	trail := NewTrail(slog.New(slog.NewTextHandler(&log, nil)))
	path := filepath.Join(t.TempDir(), "audit")
	if err := trail.SetFile(path); err != nil {
		t.Fatal(err)
	}
	uid := uint32(7)
	trail.Note(Change{What: "POST /v1/x", By: Caller{Kind: "user", Name: "u", UID: &uid, PID: 9}, Result: "it is"})
	read := func(path string) string {
		text, _ := os.ReadFile(path)
		return string(text)
	}
	eventually.Holds(t, "a line", func() bool { return strings.HasSuffix(read(path), "\n") })
	var line map[string]any
	if err := json.Unmarshal([]byte(read(path)), &line); err != nil {
		t.Fatal(err)
	}
	by, _ := line["by"].(map[string]any)
	if line["what"] != "POST /v1/x" || line["outcome"] != "done" || line["result"] != "it is" || by["uid"] != 7.0 || by["name"] != "u" || line["time"] == nil {
		t.Errorf("found %v", line)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("found %v, %v, expected mode 600", info, err)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	trail.Note(Change{What: "second", By: Signal, Err: errors.New("no:\nnot now")})
	eventually.Holds(t, "a line in the next file", func() bool {
		return strings.Contains(read(path), `"what":"second","outcome":"refused","reason":"no:; not now"`)
	})
	if strings.Count(read(path+".1"), "\n") != 1 {
		t.Errorf("found %q", read(path+".1"))
	}
	if err := trail.SetFile(filepath.Join(path, "missing")); err == nil {
		t.Error("a file that cannot be is taken")
	}
	for range 3 {
		trail.Note(Change{What: "third", By: Signal})
	}
	eventually.Finds(t, "missing lines", 3, func() uint64 { return trail.Failures() })
	if err := trail.SetFile(""); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "not in the audit file"); n != 1 || strings.Count(log.String(), "msg=change") != 5 {
		t.Errorf("found %q, expected all changes, and one line of what is missing", log.String())
	}
}

// TestFullDisk: a line that fits in part only is no line.
func TestFullDisk(t *testing.T) {
	trail := NewTrail(slog.New(slog.DiscardHandler))
	if err := trail.SetFile("/dev/full"); err == nil {
		t.Error("a device is taken for a file")
	}
	trail.Note(Change{What: "x", By: Signal})
	eventually.Finds(t, "missing lines", 1, trail.Failures)
	if err := trail.SetFile(""); err != nil {
		t.Fatal(err)
	}
}
