package token

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lunar/control"
)

// TestFile: tokens are made, found and removed; the file has none of them, and keeps its
// owner and mode.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	var texts []string
	for _, name := range []string{"prometheus", "ops@host"} {
		text, e, err := New(control.Read, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Add(path, e); err != nil {
			t.Fatal(err)
		}
		if err := Add(path, e); err == nil {
			t.Error("a name is taken twice")
		}
		texts = append(texts, text)
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), texts[0]) {
		t.Fatalf("found %q, %v", raw, err)
	}
	entries, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := Find(entries, texts[1]); !ok || e.Name != "ops@host" || e.Role != control.Read {
		t.Errorf("found %+v, %v", e, ok)
	}
	for _, wrong := range []string{"", texts[0][1:], texts[0] + " "} {
		if e, ok := Find(entries, wrong); ok {
			t.Errorf("%q: found %+v", wrong, e)
		}
	}
	if err := Remove(path, "prometheus"); err != nil {
		t.Fatal(err)
	}
	if entries, err = Read(path); err != nil || len(entries) != 1 {
		t.Errorf("found %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("found %v, %v, expected mode 640", info, err)
	}
	if err := Remove(path, "nobody"); err == nil {
		t.Error("nobody is removed")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "chmod g-w,o=") {
		t.Errorf("found %v", err)
	}
	pipe := path + ".pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(pipe); err == nil {
		t.Error("a pipe is read")
	}
}

// TestChangesTogether: of entries that are added at once none is lost, and whoever reads
// the file meanwhile, which is all that a kill leaves, finds its mode and group.
func TestChangesTogether(t *testing.T) {
	path, group := filepath.Join(t.TempDir(), "tokens"), os.Getegid()
	add := func(name string) {
		_, e, err := New(control.Read, name)
		if err == nil {
			err = Add(path, e)
		}
		if err != nil {
			t.Error(err)
		}
	}
	add("first")
	if os.Geteuid() == 0 {
		group = 4711
	}
	if err := errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	var adding sync.WaitGroup
	for i := range 8 {
		adding.Go(func() {
			for j := range 20 {
				add(fmt.Sprintf("t%d-%d", i, j))
			}
		})
	}
	done := make(chan struct{})
	go func() { adding.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if gid := info.Sys().(*syscall.Stat_t).Gid; info.Mode() != 0o640 || int(gid) != group {
			t.Fatalf("found mode %v and group %d, expected 0640 and %d", info.Mode(), gid, group)
		}
	}
	if entries, err := Read(path); err != nil || len(entries) != 161 {
		t.Errorf("found %d entries, %v", len(entries), err)
	}
}

// TestParse: what does not fit is refused, and a token that stands where its sum belongs
// is not told.
func TestParse(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"":                                   "",
		"# x\n\n  admin a " + sum + "\n":     "",
		"admin a":                            "line 1: found 2 words",
		"root a " + sum:                      "line 1: found role \"root\", expected read, operate or admin",
		"none a " + sum:                      "line 1: found role",
		"read a " + sum + "\nread a " + sum:  "line 2: found name \"a\" again",
		"read a hunter2":                     "line 1: found something else, expected the SHA-256",
		"read hunter2! " + sum:               "line 1: found something else as a name",
		"read a " + strings.Repeat("0a", 33): "line 1: found something else, expected the SHA-256",
	} {
		_, err := Parse(text)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: found %v, expected %q", text, err, want)
		case err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("a secret is told: %v", err)
		}
	}
}

// FuzzParse: whatever is read is written to the same again.
func FuzzParse(f *testing.F) {
	f.Add("admin a " + strings.Repeat("0a", 32))
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := Parse(text)
		if err != nil {
			return
		}
		var lines []string
		for _, e := range entries {
			lines = append(lines, e.String())
		}
		again, err := Parse(strings.Join(lines, "\n"))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("%q: found %v, %v", text, again, err)
		}
	})
}
