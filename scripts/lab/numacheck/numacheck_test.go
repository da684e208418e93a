package main

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
)

func TestJoin(t *testing.T) {
	policies := `7f00 prefer:1 file=/dev/shm/lunar/a dirty=3 mapped=3 N1=3 kernelpagesize_kB=4
8000 default anon=1 N0=1
9000 prefer:0 anon=2 dirty=2 N0=2 kernelpagesize_kB=4
a000 prefer=relative:3 N0=2
b000 interleave:0-1 N0=2
c000 bind:2 N2=1
d000 bind:1 N1=1
`
	ranges := `7f00-9f00 rw-s 00000000 00:19 3 /dev/shm/lunar/a
9000-b000 rw-p 00000000 00:00 0
c000-d000 rw-p 00000000 00:00 0
`
	want := []mapping{
		{0x7f00, 0x9f00, 1, "/dev/shm/lunar/a"},
		{0x9000, 0xb000, 0, "anonymous"},
		{0xc000, 0xd000, 2, "anonymous"},
	}
	if got := join(policies, ranges); !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		found  pages
		astray bool
		text   string
	}{
		{pages{1: 3}, false, "3 on node 1 "},
		{pages{0: 1, 1: 3}, true, "1 on node 0 3 on node 1 "},
		{pages{-1: 2, 1: 3}, true, "2 missing 3 on node 1 "},
		{pages{0: 3}, true, "3 on node 0 "},
		{pages{}, true, ""},
	} {
		if got := c.found.astray(1); got != c.astray {
			t.Errorf("%v astray from node 1: %v, expected %v", c.found, got, c.astray)
		}
		if got := c.found.String(); got != c.text {
			t.Errorf("found %q, expected %q", got, c.text)
		}
	}
}

// An arena of this process is found where it is, and one whose pages were given
// back is not taken for placed.
func TestArenaIsFoundWhereItIs(t *testing.T) {
	a, err := arena.Open(arena.Options{Bytes: 1 << 20, Node: 0, Huge: arena.HugeOff, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if bound := a.Bound(); !bound.OK {
		t.Skip("memory cannot be asked of a node here: " + bound.Reason)
	}
	var out strings.Builder
	pid := strconv.Itoa(os.Getpid())
	if err := run([]string{pid}, &out); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, os.ErrNotExist) {
		t.Skipf("this machine does not tell where memory is: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "\ntotal 0 anonymous 1048576\n") {
		t.Errorf("found %q, expected the arena in the sums", out.String())
	}
	if err := unix.Madvise(a.Bytes()[:4096], unix.MADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{pid}, &out); err == nil || !strings.Contains(err.Error(), "1 of 1 mappings") {
		t.Errorf("%v, expected an error: a page is missing", err)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"1", "2"}, {"x"}, {"-5"}} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%q: expected an error", args)
		}
	}
}
