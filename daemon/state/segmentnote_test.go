package state

import (
	"maps"
	"os"
	"testing"
)

// TestNoteIsReadAsWritten: it is read as it was written, and forgets what is not dirty.
func TestNoteIsReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	none, err := ReadSegmentNote(dir)
	if err != nil || none.Path != "" || len(none.Volumes) > 0 {
		t.Fatalf("found %+v, %v, expected an empty note", none, err)
	}
	n := SegmentNote{StateDir: dir, Path: "/dev/shm/lunar/x y", Volumes: map[uint64]string{7: "/new\nline", 1 << 63: ""}, Orphans: []uint64{7}}
	for range 2 { // made, and replaced
		if err := n.Write(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadSegmentNote(dir)
	if err != nil || got.Path != n.Path || !maps.Equal(got.Volumes, n.Volumes) {
		t.Errorf("found %+v, %v, expected %+v", got, err, n)
	}
	if err := n.ForgetOpen(); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSegmentNote(dir); err != nil || !maps.Equal(got.Volumes, map[uint64]string{7: "/new\nline"}) {
		t.Errorf("found %+v, %v, expected the orphan alone", got, err)
	}
	n.Orphans = nil
	for range 2 { // removed, and not there
		if err := n.ForgetOpen(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(n.File().Path()); !os.IsNotExist(err) {
		t.Errorf("found %v, expected no note", err)
	}
	if err := os.WriteFile(n.File().Path(), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSegmentNote(dir); err == nil {
		t.Error("a damaged note was accepted")
	}
}
