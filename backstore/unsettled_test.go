package backstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/internal/durable"
)

// TestKilledBeforeFlush: a new file of a start that was killed before it had made its files
// stable is made stable by the next start, and but once.
func TestKilledBeforeFlush(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "v.img")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	for start, want := range []int{1, 0} {
		b := &durable.Batch{}
		s, err := backstore.OpenFile(backstore.FileConfig{
			Path: path, Size: size,
			Intents: backstore.Intents{Dir: dir, Marks: filepath.Join(dir, "marks"), Batch: b},
		})
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		if found := descriptors(t, path); found != want {
			t.Errorf("start %d: the batch has %d descriptors of the file, expected %d", start, found, want)
		}
		if err := b.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOpenedAgainBeforeFlush: a new file can be closed and opened again before it is stable,
// as is one on a file system that has no direct I/O for it.
func TestOpenedAgainBeforeFlush(t *testing.T) {
	dir, b := t.TempDir(), &durable.Batch{}
	for range 2 {
		s, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "v.img"), Size: size, Intents: backstore.Intents{Dir: dir, Batch: b}})
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
}

// descriptors is how many this process has of a file.
func descriptors(t *testing.T, path string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if to, err := os.Readlink(link); err == nil && to == path {
			n++
		}
	}
	return n
}
