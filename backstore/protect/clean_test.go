package protect

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// TestClean: of a copy that was made while a region was dirty, but nothing under way, nothing
// has to be looked at once it says so; what is no sidecar file is left as it is.
func TestClean(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	s := opened(t, dir, Type1, 4<<20)
	c := closed(t, s)
	data := backstoretest.Buffer(4096)
	copy(data, bytes.Repeat([]byte{7}, len(data)))
	if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 1 << 20, Data: data}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "tuples"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(copied, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dirty := func() int {
		j, err := openJournal(filepath.Join(copied, "tuples"), s.shape)
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		n := 0
		for i := range s.shape.regions() {
			if j.has(i) {
				n++
			}
		}
		return n
	}
	if n := dirty(); n != 1 {
		t.Fatalf("found %d dirty regions, expected the one that was written", n)
	}
	if err := Clean(filepath.Join(copied, "tuples")); err != nil {
		t.Fatal(err)
	}
	if n := dirty(); n != 0 {
		t.Errorf("found %d dirty regions", n)
	}
	again := closed(t, opened(t, copied, Type1, 4<<20))
	if got := again.Read(t, 1<<20, 4096); !bytes.Equal(got, data) {
		t.Error("found other data in the copy")
	}
	if err := Clean(filepath.Join(copied, "data")); err == nil || !strings.Contains(err.Error(), "expected a file with protection information") {
		t.Errorf("found %v, expected that it is refused", err)
	}
}
