package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMark: a mark is there from Make to Remove, as often as either is called, and no
// mark is none.
func TestMark(t *testing.T) {
	m := Mark(filepath.Join(t.TempDir(), "marks", "f"))
	for _, step := range []struct {
		do    func() error
		there bool
	}{{m.Remove, false}, {m.Make, true}, {m.Make, true}, {m.Remove, false}, {m.Remove, false}, {Mark("").Make, false}, {Mark("").Remove, false}} {
		if err := step.do(); err != nil || m.There() != step.there || Mark("").There() {
			t.Errorf("%v, there %v, expected %v", err, m.There(), step.there)
		}
	}
}

// TestAbsent: a link that leads nowhere is something, and so is what cannot be looked at.
func TestAbsent(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for path, absent := range map[string]bool{dir: false, link: false, filepath.Join(dir, "none"): true, filepath.Join(link, "x\x00"): false} {
		if Absent(path) != absent {
			t.Errorf("%q: found %v, expected %v", path, !absent, absent)
		}
	}
}
