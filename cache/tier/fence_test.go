package tier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
)

// The rings of all who have lanes keep the segment's lock: the flusher's, and that
// of a loop with two volumes.
func TestFence(t *testing.T) {
	s := newSite(t)
	p := s.start()
	p.loop = backstoretest.NewLoop(t, true)
	p.open("a", Back)
	p.open("b", Through)
	backstoretest.On(p.loop, func() {}) // what was posted before is done
	backstoretest.On(p.cache.flusher.mu.loop, func() {})
	if n := holders(t, s.options.Segment); n != 2 {
		t.Errorf("%d rings hold the segment, expected 2", n)
	}
	p.end()
	s.start().outcome(segment.Warm).end() // though the rings are there still
}

// holders counts the rings of this process that hold a file of the directory of
// path: the kernel may not know the name that it got later.
func holders(t *testing.T, path string) (n int) {
	t.Helper()
	rings, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range rings {
		if target, _ := os.Readlink(fd); target != "anon_inode:[io_uring]" {
			continue
		}
		info, err := os.ReadFile(strings.Replace(fd, "/fd/", "/fdinfo/", 1))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(info), "0: "+filepath.Dir(path)+"/") {
			n++
		}
	}
	return n
}
