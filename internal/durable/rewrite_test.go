package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
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
			must(t, os.WriteFile(path+".new", []byte("left by a crash"), 0o600))
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
			if _, err := os.Lstat(path + ".new"); c.err == nil && err == nil {
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
