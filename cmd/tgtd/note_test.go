package main

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/cache/segment"
	"lunar/internal/arena"
)

// dirtySegment leaves a segment behind as a crash does, with some dirty data or
// none.
func dirtySegment(t *testing.T, path string, dirty bool) {
	t.Helper()
	s, err := segment.Attach(path, segment.Options{
		Identity: "server", Build: "test", Huge: arena.HugeOff, Threads: 1,
		Geometry: segment.Geometry{Slots: 4, BlockSize: 64 << 10, SubBlock: 4096},
	})
	if err != nil {
		t.Fatal(err)
	}
	if dirty {
		if err := s.Assign(1, 7, 3); err != nil {
			t.Fatal(err)
		}
		s.MarkDirty(1, 1)
	}
	if err := s.Abandon(); err != nil {
		t.Fatal(err)
	}
}

func TestLeftover(t *testing.T) {
	memory, state := memoryDir(t), t.TempDir()
	dirty, clean, foreign := filepath.Join(memory, "dirty"), filepath.Join(memory, "clean"), filepath.Join(memory, "foreign")
	dirtySegment(t, dirty, true)
	dirtySegment(t, clean, false)
	writeFile(t, foreign, strings.Repeat("other", 10<<10))
	for _, test := range []struct{ noted, path, err, log string }{
		{"", "", "", ""},
		{"", dirty, "", ""},
		{dirty, dirty, "", ""},
		{dirty, clean, "found 4 KiB of unwritten data", ""},
		{dirty, "", "start once with cache.segment: " + memory, ""},
		{clean, "", "", "keeps its memory until it is removed"},
		{foreign, "", "refused", ""},
		{foreign, foreign, "", ""},
		{filepath.Join(memory, "gone"), filepath.Join(memory, "gone"), "", "writes that initiators had not flushed may be lost"},
	} {
		var out buffer
		n := segmentNote{stateDir: state, path: test.noted, volumes: map[uint64]string{7: "/v"}}
		err := n.checkLeftover(test.path, slog.New(slog.NewTextHandler(&out, nil)))
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: found %v", test, err)
		}
		if (out.String() == "") != (test.log == "") || !strings.Contains(out.String(), test.log) {
			t.Errorf("%+v: found log %s", test, &out)
		}
	}
}

// TestNote: it is read as it was written, and forgets what is not dirty.
func TestNote(t *testing.T) {
	state := t.TempDir()
	none, err := readNote(state)
	if err != nil || none.path != "" || len(none.volumes) > 0 {
		t.Fatalf("found %+v, %v, expected an empty note", none, err)
	}
	n := segmentNote{stateDir: state, path: "/dev/shm/lunar/x y", volumes: map[uint64]string{7: "/new\nline", 1 << 63: ""}, orphans: []uint64{7}}
	for range 2 { // made, and replaced
		if err := n.write(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readNote(state)
	if err != nil || got.path != n.path || !maps.Equal(got.volumes, n.volumes) {
		t.Errorf("found %+v, %v, expected %+v", got, err, n)
	}
	if err := n.forgetOpen(); err != nil {
		t.Fatal(err)
	}
	if got, err := readNote(state); err != nil || !maps.Equal(got.volumes, map[uint64]string{7: "/new\nline"}) {
		t.Errorf("found %+v, %v, expected the orphan alone", got, err)
	}
	n.orphans = nil
	for range 2 { // removed, and not there
		if err := n.forgetOpen(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(n.file().path()); !os.IsNotExist(err) {
		t.Errorf("found %v, expected no note", err)
	}
	writeFile(t, n.file().path(), "damaged")
	if _, err := readNote(state); err == nil {
		t.Error("a damaged note was accepted")
	}
}
