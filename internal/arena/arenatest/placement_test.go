package arenatest

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMapping(t *testing.T) {
	m, ok := parseMapping("7f12 prefer:1 file=/dev/shm/x huge dirty=3 N0=1 N1=2 kernelpagesize_kB=2048\n")
	if !ok || m.Start != 0x7f12 || m.Policy != "prefer:1" || m.File != "/dev/shm/x" || !m.Huge || m.Page != 2<<20 || m.Pages[0] != 1 || m.Pages[1] != 2 {
		t.Errorf("%+v %v", m, ok)
	}
	for _, line := range []string{"", "7f12", "xyz default"} {
		if m, ok := parseMapping(line); ok {
			t.Errorf("%q: %+v", line, m)
		}
	}
}

func TestPlacementOn(t *testing.T) {
	p := Placement{Pages: map[int]int{}}
	if p.On(0) != 0 {
		t.Error("no page is on node 0")
	}
	p.add([]int32{0, 0, 1, 0, -int32(unix.ENOENT)})
	if p.On(0) != 0.75 || p.On(1) != 0.25 || p.Missing != 1 {
		t.Errorf("%+v", p)
	}
}
