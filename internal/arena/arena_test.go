package arena

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/arena/arenatest"
	"lunar/internal/numa"
)

const gib = 1 << 30

func TestLimits(t *testing.T) {
	l := Limits{Available: 2 * gib, Space: gib, HugeFree: 6 << 20, HugeTotal: 10 << 20, HugePage: 2 << 20, Locked: 8 << 20}
	for _, c := range []struct {
		demand Demand
		want   string // of the error; "" fits
	}{
		{Demand{Bytes: 2 * gib}, ""},
		{Demand{Bytes: 2*gib + 1}, "only 2GiB of memory are available"},
		{Demand{Bytes: gib, File: true}, ""},
		{Demand{Bytes: gib + 1, File: true}, "only 1GiB are free on its file system"},
		{Demand{Bytes: 8 << 20, Lock: true}, ""},
		{Demand{Bytes: 9 << 20, Lock: true}, "only 8MiB may be locked in memory (RLIMIT_MEMLOCK)"},
		{Demand{Bytes: 6 << 20, Huge: true}, ""},
		{Demand{Bytes: 9 << 20, Huge: true}, "needs 5 of 2MiB, found 3 free of 5; set vm.nr_hugepages to at least 7"},
	} {
		err := l.Check(c.demand)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected %q", c.demand, err, c.want)
		}
	}
	if err := (Limits{}).Check(Demand{Bytes: 1, Huge: true}); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("kernel without huge pages: %v", err)
	}
}

func TestReadLimits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "meminfo")
	text := "MemTotal: 9 kB\nMemAvailable: 7 kB\nHugePages_Total: 5\nHugePages_Free: 4\nHugePages_Rsvd: 1\nHugepagesize: 2048 kB\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readMeminfo(path)
	if want := (Limits{Available: 7 << 10, HugeFree: 6 << 20, HugeTotal: 10 << 20, HugePage: 2 << 20}); err != nil || got != want {
		t.Errorf("%+v %v, expected %+v", got, err, want)
	}
	if got, err := readMeminfo(filepath.Join(dir, "none")); err != nil || got.Available != math.MaxInt64 {
		t.Errorf("no meminfo: %+v %v, expected no limit", got, err)
	}
	if room := cgroupRoom(dir); room != math.MaxInt64 {
		t.Errorf("room %d without a cgroup", room)
	}
	for file, value := range map[string]string{"memory.max": "100\n", "memory.current": "30\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if room := cgroupRoom(dir); room != 70 {
		t.Errorf("room %d, expected 70", room)
	}
	if real, err := ReadLimits(dir); err != nil || real.Available <= 0 || real.Space <= 0 || real.Locked <= 0 {
		t.Errorf("limits of this machine %+v %v", real, err)
	}
}

func TestReadPool(t *testing.T) {
	pools := t.TempDir()
	dir := filepath.Join(pools, "hugepages-1048576kB")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, value := range map[string]string{"nr_hugepages": "5\n", "free_hugepages": "4\n", "resv_hugepages": "1\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	usual := Limits{HugePage: 2 << 20, HugeTotal: 8 << 20, HugeFree: 6 << 20}
	got := usual
	if got.readPool(pools, gib); got != (Limits{HugePage: gib, HugeTotal: 5 * gib, HugeFree: 3 * gib}) {
		t.Errorf("%+v", got)
	}
	got = usual
	if got.readPool(pools, 64<<10); got != usual {
		t.Errorf("%+v of a size that does not exist, expected %+v", got, usual)
	}
}

// memoryDir is a directory of a memory file system, removed after the test.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lunar-arena-")
	if err != nil {
		dir = t.TempDir() // any file system can be mapped
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestOpen(t *testing.T) {
	topology := numa.Topology{Nodes: []numa.Node{{ID: 0}}}
	path := filepath.Join(memoryDir(t), "arena")
	for _, o := range []Options{
		{Bytes: 1, Node: -1},
		{Bytes: 3 << 20, Node: topology.Nodes[0].ID, Huge: HugeOff},
		{Bytes: chunk + 12345, Node: 0, Threads: 3},
		{Bytes: 3 << 20, Node: 0, Path: path},
		{Bytes: 1 << 20, Node: 0, Lock: true},
	} {
		var last int64
		o.Progress = func(done, total int64) {
			if done <= last || done > total {
				t.Errorf("progress %d after %d of %d", done, last, total)
			}
			last = done
		}
		a, err := Open(o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		checkArena(t, a, o)
		if last != int64(len(a.Bytes())) {
			t.Errorf("progress ended at %d of %d", last, len(a.Bytes()))
		}
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("file after Close: %v", err)
	}
}

// checkArena: all memory is zero, there, and on the node that was asked for.
func checkArena(t *testing.T, a *Arena, o Options) {
	t.Helper()
	mem := a.Bytes()
	if int64(len(mem)) < o.Bytes || len(mem)%os.Getpagesize() != 0 {
		t.Fatalf("%d bytes for %d", len(mem), o.Bytes)
	}
	for i := 0; i < len(mem); i += 1021 {
		if mem[i] != 0 {
			t.Fatalf("byte %d is %#x", i, mem[i])
		}
	}
	mem[len(mem)-1] = 1
	if o.Node < 0 {
		return
	}
	if !a.Bound().OK {
		t.Logf("not bound: %s", a.Bound().Reason)
		return
	}
	placed, err := arenatest.Placed(mem)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Logf("placement cannot be asked for: %v", err)
		return
	}
	if err != nil || placed.Missing != 0 || placed.On(o.Node) != 1 {
		t.Errorf("placed %+v %v, expected all on node %d", placed, err, o.Node)
	}
	if m, err := arenatest.Mapped(mem); err != nil || !strings.HasPrefix(m.Policy, "prefer") || m.Pages[o.Node] == 0 {
		t.Errorf("numa_maps says %+v %v", m, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := memoryDir(t)
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"nothing", Options{Node: -1}, "expected at least 1"},
		{"more than the machine has", Options{Bytes: 1 << 50, Node: -1}, "of memory are available"},
		{"more huge pages than there are", Options{Bytes: 1 << 50, Node: -1, Huge: HugeRequire}, "in huge pages"},
		{"huge pages of a usual file system", Options{Bytes: 1, Node: -1, Huge: HugeRequire, Path: dir + "/x"}, "not on hugetlbfs"},
		{"a file that exists", Options{Bytes: 1, Node: -1, Path: taken}, "file exists"},
		{"no directory", Options{Bytes: 1, Node: -1, Path: dir + "/none/x"}, "no such file"},
		{"no such node", Options{Bytes: 1, Node: maxNodes}, "expected 0 to 1023"},
	} {
		a, err := Open(c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v, expected an error with %q", c.name, a, err, c.want)
		}
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "precious" {
		t.Errorf("existing file now holds %q %v", text, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
}

func TestHugePages(t *testing.T) {
	limits, err := ReadLimits("")
	if err != nil {
		t.Fatal(err)
	}
	if limits.Check(Demand{Bytes: 1, Huge: true}) != nil {
		t.Skip("no free huge pages: the administrator has reserved none")
	}
	a, err := Open(Options{Bytes: 1, Node: 0, Huge: HugeRequire})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	pages, _ := a.Pages()
	m, err := arenatest.Mapped(a.Bytes())
	if pages != HugePages || err != nil || !m.Huge || m.Page != limits.HugePage {
		t.Errorf("%v pages, mapping %+v %v; expected huge ones", pages, m, err)
	}
}

func TestPopulateKeepsContent(t *testing.T) {
	for name, f := range map[string]func([]byte) error{
		"populate": func(mem []byte) error { return Populate(mem, 2, nil) },
		"touch":    func(mem []byte) error { touch(mem); return nil },
	} {
		a, err := mapAnonymous(1<<20, 0)
		if err != nil {
			t.Fatal(err)
		}
		a.mem[5], a.mem[1<<19] = 7, 9
		if err := f(a.mem); err != nil || a.mem[5] != 7 || a.mem[1<<19] != 9 {
			t.Errorf("%s: %v, content %d %d", name, err, a.mem[5], a.mem[1<<19])
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Memory that is not there is an error, not the end of the process.
func TestPopulateReportsMissingMemory(t *testing.T) {
	f, err := os.CreateTemp(memoryDir(t), "short")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := mapNew(f, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if unix.Madvise(mem[:1], unix.MADV_POPULATE_WRITE) != nil {
		t.Skip("a kernel before 5.14 cannot tell")
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := Populate(mem, 2, nil); err == nil || !strings.Contains(err.Error(), "ran out") {
		t.Errorf("memory of an emptied file: %v", err)
	}
}

func TestParseHuge(t *testing.T) {
	for _, h := range []Huge{HugeAuto, HugeOff, HugeRequire} {
		if got, err := ParseHuge(h.String()); err != nil || got != h {
			t.Errorf("%v: %v %v", h, got, err)
		}
	}
	if _, err := ParseHuge("maybe"); err == nil {
		t.Error("maybe was accepted")
	}
}
