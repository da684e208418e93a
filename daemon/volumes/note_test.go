package volumes

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/cache/segment"
	"lunar/daemon/state"
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
	if err := s.Detach(); err != nil {
		t.Fatal(err)
	}
}

func TestLeftover(t *testing.T) {
	memory, dir := segmentDir(t), t.TempDir()
	dirty, clean, foreign := filepath.Join(memory, "dirty"), filepath.Join(memory, "clean"), filepath.Join(memory, "foreign")
	dirtySegment(t, dirty, true)
	dirtySegment(t, clean, false)
	writeText(t, foreign, strings.Repeat("other", 10<<10))
	for _, test := range []struct{ noted, path, err, log string }{
		{"", "", "", ""},
		{"", dirty, "", ""},
		{dirty, dirty, "", ""},
		{dirty, clean, "found 4KiB of unwritten data", ""},
		{dirty, "", "start once with cache.segment: " + memory, ""},
		{clean, "", "", "keeps its memory until it is removed"},
		{foreign, "", "refused", ""},
		{foreign, foreign, "", ""},
		{filepath.Join(memory, "gone"), filepath.Join(memory, "gone"), "", "writes that initiators had not flushed may be lost"},
	} {
		var out bytes.Buffer
		n := state.SegmentNote{StateDir: dir, Path: test.noted, Volumes: map[uint64]string{7: "/v"}}
		err := CheckLeftover(&n, test.path, slog.New(slog.NewTextHandler(&out, nil)))
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: found %v", test, err)
		}
		if (out.String() == "") != (test.log == "") || !strings.Contains(out.String(), test.log) {
			t.Errorf("%+v: found log %s", test, &out)
		}
	}
}

// segmentDir is a directory in memory.
func segmentDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lunar-volumes-")
	if err != nil {
		t.Skipf("no shared memory: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
