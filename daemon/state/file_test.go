package state

import (
	"os"
	"testing"
)

// TestKeep: what is there already is not written again, and what it lacks is made.
func TestKeep(t *testing.T) {
	f := RecordOf(t.TempDir(), "v")
	keep := func(size int64) os.FileInfo {
		t.Helper()
		lacks, err := f.Keep(&Record{Path: "/v", Size: size})
		if err == nil {
			err = WriteAll(nil, lacks)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.Peek(); err != nil || r.Size != size || !f.Mark().There() {
			t.Errorf("found %+v, %v", r, err)
		}
		info, err := os.Stat(f.Path())
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := keep(1)
	if !os.SameFile(first, keep(1)) {
		t.Error("what had not changed was written again")
	}
	if second := keep(2); os.SameFile(first, second) {
		t.Error("what had changed was not written")
	}
	if err := f.Mark().Remove(); err != nil {
		t.Fatal(err)
	}
	keep(2)
	if err := os.WriteFile(f.Path(), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	keep(2)
	if err := f.Settled(); err != nil {
		t.Error(err)
	}
	if err := RecordOf(t.TempDir(), "v").Settled(); err != nil {
		t.Error("without a directory there is nothing to settle", err)
	}
}
