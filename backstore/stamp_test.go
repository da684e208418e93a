package backstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stampsOf opens the file as a store for a moment.
func stampsOf(t *testing.T, path string) (opened, closed Stamp) {
	t.Helper()
	s, err := OpenFile(FileConfig{Path: path, Size: 8192})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	opened, ok := s.(Stamper).Opened()
	closed, err = s.(Stamper).Stamp()
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return opened, closed
}

// The stamp of a file survives Close, and changes with content and file.
func TestStampOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v")
	_, before := stampsOf(t, path)
	again, first := stampsOf(t, path)
	if again != before {
		t.Errorf("nobody wrote: %v, then %v", before, again)
	}
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	written, _ := stampsOf(t, path)
	if written.Medium != first.Medium || written.State == first.State {
		t.Errorf("somebody wrote: %v, then %v", first, written)
	}
	copied := path + "2"
	if err := os.WriteFile(copied, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	if other, _ := stampsOf(t, path); other.Medium == first.Medium {
		t.Errorf("another file has the same medium: %v", other)
	}
	before, _ = stampsOf(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	stampsOf(t, path) // creates another, perhaps with the same inode number
	if other, _ := stampsOf(t, path); other.Medium == before.Medium {
		t.Errorf("a new file has the medium of the one before: %v", other)
	}
}

func TestParseBlockStat(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"  1 2 3 4 5 6 700 8 9 10 11":                {700, 0},
		"1 2 3 4 5 6 700 8 9 10 11 12 13 1400 15 16": {700, 1400},
		"1 2 3 4 5 6":                     {},
		"":                                {},
		"1 2 3 4 5 6 x":                   {},
		"1 2 3 4 5 6 7 8 9 10 11 12 13 x": {7, 0},
	} {
		written, discarded, err := parseBlockStat(text)
		if got := [2]uint64{written, discarded}; got != want || (err != nil) != (want[0] < 700) {
			t.Errorf("%q: %v, %v, expected %v", text, got, err, want)
		}
	}
}
