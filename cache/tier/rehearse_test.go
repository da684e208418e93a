package tier

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/internal/arena"
)

// leave has a process crash with unwritten data, and a write of them half done.
func (s *site) leave(t *testing.T, data []byte) {
	t.Helper()
	p := s.start()
	o := p.open("a", Back)
	o.Write(t, 0, data)
	o.settle(t)
	slots := p.cache.blocks.Parts[0].Slots()
	for id := range p.cache.blocks.Parts {
		part := &p.cache.blocks.Parts[id]
		for slot := range slots {
			if p.cache.config.Segment.Journal.Dirty(part.Base()+slot) != 0 {
				buffer, record := intentOf(p.cache, 255)
				copy(buffer, bytes.Repeat([]byte{0x77}, sector))
				intend(record, spot{part.Base() + slot, 0, sector})
			}
		}
	}
	p.crash()
}

// mappings are the lines of what this process has mapped of a file.
func mappings(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, path) {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestRehearsalTakesNoMemory: what cannot be written cannot be copied, so that no page is
// taken that hugetlbfs or a memory cgroup may not have.
func TestRehearsalTakesNoMemory(t *testing.T) {
	s := newSite(t)
	s.leave(t, backstoretest.Pattern(8<<10, 1))
	before, _ := os.ReadFile(s.options.Segment)
	r, err := Rehearse(s.options)
	if err != nil {
		t.Fatal(err)
	}
	found := mappings(t, s.options.Segment)
	for _, line := range found {
		if !strings.Contains(line, " r--s ") {
			t.Errorf("expected to be read-only and shared: %s", line)
		}
	}
	if u := r.Unwritten(); len(found) == 0 || len(u) != 1 || u[0].Name != "a" || u[0].Bytes != 8<<10 {
		t.Errorf("%d mappings, unwritten %+v", len(found), u)
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
	if after, _ := os.ReadFile(s.options.Segment); !bytes.Equal(before, after) {
		t.Error("the rehearsal has changed the segment")
	}
	s.start().end()
}

// TestRehearsalOnFullHugetlbfs is of a pool of huge pages that the segment has taken all of.
func TestRehearsalOnFullHugetlbfs(t *testing.T) {
	dir := os.Getenv("LUNAR_HUGETLBFS")
	if dir == "" {
		t.Skip("LUNAR_HUGETLBFS does not name a directory on hugetlbfs")
	}
	s := newSite(t)
	s.options.Segment, s.options.Huge = filepath.Join(dir, "lunar-rehearsal"), arena.HugeRequire
	defer os.Remove(s.options.Segment)
	data := backstoretest.Pattern(8<<10, 1)
	s.leave(t, data)
	exhaust(t, filepath.Join(dir, "lunar-rest"))
	r, err := Rehearse(s.options)
	if err != nil {
		t.Fatal(err)
	}
	if u := r.Unwritten(); len(u) != 1 {
		t.Errorf("unwritten %+v", u)
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
	p := s.start()
	if got := p.open("a", Back).Read(t, sector, len(data)-sector); !bytes.Equal(got, data[sector:]) {
		t.Error("unwritten data are lost")
	}
	p.end()
}

// exhaust takes all huge pages that are free.
func exhaust(t *testing.T, path string) {
	t.Helper()
	rest, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rest.Close(); _ = os.Remove(path) })
	for at, size := int64(0), int64(2<<20); ; at += size {
		if err := unix.Fallocate(int(rest.Fd()), 0, at, size); err == unix.ENOSPC {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
