package volumes

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSpace: a sparse file has not allocated its size; a missing one is not measured.
func TestSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	h := newHealth()
	if found := h.Space("v"); found != nil {
		t.Errorf("found %+v before it was measured", found)
	}
	h.Measure("v", path)
	s := h.Space("v")
	if s == nil || s.Size <= 0 || s.Free < 0 || s.Unallocated > 1<<30 || s.Unallocated < 1<<30-2<<20 {
		t.Errorf("found %+v, expected about 1023 MiB that are not allocated", s)
	}
	h.Measure("v", path+"x")
	if found := h.Space("v"); found != nil {
		t.Errorf("found %+v of a file that is not there", found)
	}
}
