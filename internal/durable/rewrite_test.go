package durable

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRewrite: a file is replaced if it is as it was read, and keeps its mode; otherwise
// it stays as it is.
func TestRewrite(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		err  error // nil: it is replaced
	}{
		{"as it was", func(t *testing.T, path string) {}, nil},
		{"a group may read it", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o640)) }, nil},
		{"edited", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("by hand"), 0o600)) }, ErrChanged},
		{"missing", func(t *testing.T, path string) { must(t, os.Remove(path)) }, fs.ErrNotExist},
		{"read-only", func(t *testing.T, path string) { must(t, os.Chmod(path, 0o444)) }, fs.ErrPermission},
		{"a link", func(t *testing.T, path string) {
			must(t, os.Rename(path, path+".real"))
			must(t, os.Symlink(path+".real", path))
		}, ErrForeign},
		{"two names", func(t *testing.T, path string) { must(t, os.Link(path, path+".other")) }, ErrForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			must(t, os.WriteFile(path, []byte("old"), 0o600))
			beside := filepath.Join(filepath.Dir(path), ".file.new")
			must(t, os.WriteFile(beside, []byte("left by a crash"), 0o600))
			c.make(t, path)
			before, _ := os.ReadFile(path)
			mode := modeOf(path)
			err := Rewrite(path, []byte("old"), []byte("new"))
			if !errors.Is(err, c.err) {
				t.Fatalf("found %v, expected %v", err, c.err)
			}
			after, _ := os.ReadFile(path)
			if want := map[bool]string{true: "new", false: string(before)}[c.err == nil]; string(after) != want {
				t.Errorf("found %q, expected %q", after, want)
			}
			if modeOf(path) != mode {
				t.Errorf("found mode %v, before %v", modeOf(path), mode)
			}
			if _, err := os.Lstat(beside); c.err == nil && err == nil {
				t.Error("found the old file beside the new one")
			}
		})
	}
}

func modeOf(path string) fs.FileMode {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Mode()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoSpace: a file that does not fit leaves nothing beside the old one.
func TestNoSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &was))
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: was.Max}))
	long := make([]byte, 8192)
	rewritten, replaced := Rewrite(path, []byte("old"), long), Replace(path, long)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &was))
	if !errors.Is(rewritten, unix.EFBIG) || !errors.Is(replaced, unix.EFBIG) {
		t.Errorf("found %v and %v, expected %v", rewritten, replaced, unix.EFBIG)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("found %v, %v", all, err)
	}
}

// TestDraftStays: NAME.new beside a file that is rewritten is somebody's.
func TestDraftStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	must(t, os.WriteFile(path+".new", []byte("draft"), 0o600))
	must(t, Rewrite(path, []byte("old"), []byte("new")))
	if draft, err := os.ReadFile(path + ".new"); err != nil || string(draft) != "draft" {
		t.Errorf("found %q, %v", draft, err)
	}
}
