package segment

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
)

// sharedDir is a directory in shared memory, removed after the test.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "lunar-segment-")
	if err != nil {
		dir = t.TempDir() // any file system with O_TMPFILE will do
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func testOptions() Options {
	return Options{Identity: "iqn.2026-11.test:server", Build: "v1", Geometry: Geometry{
		Slots: 16, BlockSize: 64 << 10, SubBlock: 4 << 10, Layout: "index 1",
		Areas: []Area{{"index", 5000, 0, true}, {"data", 1 << 20, 0, false}},
	}}
}

func attach(t testing.TB, path string, o Options) *Segment {
	t.Helper()
	s, err := Attach(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expectRefused(t *testing.T, err error, reason Reason, words ...string) {
	t.Helper()
	var refused *Refused
	if !errors.As(err, &refused) || refused.Reason != reason {
		t.Fatalf("%v, expected a refusal as %v", err, reason)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q, expected %q in it", err, word)
		}
	}
}

// Fresh, crashed, warm: one file through all outcomes.
func TestOutcomes(t *testing.T) {
	path, o := filepath.Join(sharedDir(t), "cache"), testOptions()
	s := attach(t, path, o)
	if s.Outcome != Fresh || s.Generation != 1 || len(s.Dirty) != 0 || len(s.Area("index")) != 5000 || len(s.Area("data")) != 1<<20 || s.Area("none") != nil {
		t.Fatalf("%v, generation %d, dirty %v", s.Outcome, s.Generation, s.Dirty)
	}
	copy(s.Area("data"), "hello")
	s.Area("index")[4999] = 7
	if err := s.Assign(3, 11, 12); err != nil {
		t.Fatal(err)
	}
	s.MarkDirty(3, 0b101)
	if err := s.Detach(); err != nil {
		t.Fatal(err)
	}
	checkKept(t, path, o, 2, Crashed)
	checkKept(t, path, o, 3, Warm)
	checkKept(t, path, o, 4, Warm)
}

// checkKept attaches, expects what TestOutcomes stored, and closes in order.
func checkKept(t *testing.T, path string, o Options, generation uint64, want Outcome) {
	t.Helper()
	s := attach(t, path, o)
	if s.Outcome != want || s.Generation != generation || string(s.Area("data")[:5]) != "hello" || s.Area("index")[4999] != 7 {
		t.Errorf("%v, generation %d, data %q; expected %v, %d", s.Outcome, s.Generation, s.Area("data")[:5], want, generation)
	}
	if len(s.Dirty) != 1 || s.Dirty[0] != (Range{Volume: 11, Block: 12, Mask: 0b101, Slot: 3, Sequence: 1}) {
		t.Errorf("dirty %+v", s.Dirty)
	}
	if err := s.Remove(); err == nil || !strings.Contains(err.Error(), "slot 3") {
		t.Errorf("removing a dirty segment: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(sharedDir(t), "cache")
	if err := attach(t, path, testOptions()).Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if _, err := Describe(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("description of nothing: %v", err)
	}
}

func TestSecondProcessIsBusy(t *testing.T) {
	path, o := filepath.Join(sharedDir(t), "cache"), testOptions()
	first := attach(t, path, o)
	_, err := Attach(path, o)
	expectRefused(t, err, Busy, path, "lock of another process")
	ended := make(chan error, 1)
	o.Wait, o.Waits = time.Minute, func(why error, _ time.Duration) {
		expectRefused(t, why, Busy, path, "lock of another process")
		if first != nil { // once
			ended <- first.Close()
			first = nil
		}
	}
	second := attach(t, path, o)
	if err := errors.Join(<-ended, second.Close()); err != nil || second.Outcome != Warm {
		t.Errorf("%v after waiting, %v", second.Outcome, err)
	}
}

// left makes a segment with one dirty block and returns its path.
func left(t *testing.T, dirty bool) string {
	path := filepath.Join(sharedDir(t), "cache")
	s := attach(t, path, testOptions())
	if dirty {
		if err := s.Assign(1, 2, 3); err != nil {
			t.Fatal(err)
		}
		s.MarkDirty(1, 1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, path string, o *Options)
		reason Reason
		words  []string
	}{
		{"other server", func(_ *testing.T, _ string, o *Options) { o.Identity = "other" }, Identity,
			[]string{`"iqn.2026-11.test:server"`, `expected server "other"`, "4096 bytes of unwritten data"}},
		{"other layout", func(_ *testing.T, _ string, o *Options) { o.Geometry.Layout = "index 2" }, Changed,
			[]string{"layout: index 1", "expected index 2", "start once with the old settings"}},
		{"more blocks", func(_ *testing.T, _ string, o *Options) { o.Geometry.Slots = 17; o.Replace = true }, Changed,
			[]string{"cache blocks: 16", "expected 17", "4096 bytes of unwritten data"}},
		{"other area", func(_ *testing.T, _ string, o *Options) { o.Geometry.Areas = []Area{{"index", 1, -1, false}} }, Changed,
			[]string{"index (5000 bytes), data (1048576 bytes)", "expected index (1 bytes)"}},
		{"newer format", poke(atFormat*8, 9), Version, []string{"format 9", `written by version "v1"`, "expected format 1"}},
		{"foreign file", poke(0, 'x'), Foreign, []string{"begins with", "left untouched"}},
		{"damaged header", poke(atIdentity*8, 'x'), Damaged, []string{"header checksum"}},
		{"damaged journal", poke((headWords+recordWords+atBlockNumber)*8, 99), Damaged, []string{"1 of 1 records", "slot 1"}},
		{"damaged states", func(t *testing.T, path string, o *Options) {
			poke(int64(stateAt[0])*8, 99)(t, path, o)
			poke(int64(stateAt[1])*8, 99)(t, path, o)
		}, Damaged, []string{"two copies of the state"}},
		{"damaged area", poke(pageBytes*3+4000, 1), Damaged, []string{`of area "index"`}},
		{"cut off", func(t *testing.T, path string, _ *Options) { must(t, os.Truncate(path, 1<<20)) }, Damaged, []string{"1048576 bytes whose header says"}},
		{"almost empty", func(t *testing.T, path string, _ *Options) { must(t, os.Truncate(path, 100)) }, Foreign, []string{"a file of 100 bytes"}},
		{"readable by all", func(t *testing.T, path string, _ *Options) { must(t, os.Chmod(path, 0o644)) }, Unsafe, []string{"mode 0644", "expected mode 0600"}},
		{"symbolic link", func(t *testing.T, path string, _ *Options) {
			must(t, os.Rename(path, path+".real"))
			must(t, os.Symlink(path+".real", path))
		}, Unsafe, []string{"symbolic link"}},
		{"named pipe", func(t *testing.T, path string, _ *Options) {
			must(t, os.Remove(path))
			must(t, unix.Mkfifo(path, 0o600))
		}, Unsafe, []string{"expected a regular file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, o := left(t, true), testOptions()
			c.change(t, path, &o)
			before := content(path)
			s, err := Attach(path, o)
			if err == nil {
				t.Fatalf("attached: %v", s.Outcome)
			}
			expectRefused(t, err, c.reason, append(c.words, path)...)
			if content(path) != before {
				t.Error("the refused file has changed")
			}
		})
	}
}

// content is that of a regular file; nobody would ever write to a pipe.
func content(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, _ := os.ReadFile(path)
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// poke changes a byte of the file.
func poke(at int64, v byte) func(*testing.T, string, *Options) {
	return func(t *testing.T, path string, _ *Options) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte{v}, at)
		must(t, err)
	}
}

func TestReplace(t *testing.T) {
	path, o := left(t, false), testOptions()
	o.Geometry.Slots = 20
	_, err := Attach(path, o)
	expectRefused(t, err, Changed, "it holds no unwritten data: remove the file")
	o.Replace = true
	s := attach(t, path, o)
	if s.Outcome != Fresh || !strings.Contains(s.Replaced, "cache blocks: 16") {
		t.Errorf("%v, replaced %q", s.Outcome, s.Replaced)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s := attach(t, path, o); s.Outcome != Warm {
		t.Errorf("%v, expected the new one warm", s.Outcome)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	path, o := left(t, true), testOptions()
	d, err := Describe(path)
	if err != nil || d.Refused != nil || d.InUse || !d.Clean || d.Identity != o.Identity || d.UsedBy != "v1" || d.Ranges != 1 || d.Dirty != 4096 || d.Generation != 1 || d.Process != uint32(os.Getpid()) {
		t.Errorf("%+v %v", d, err)
	}
	if err := d.Attachable(o); err != nil {
		t.Error(err)
	}
	o.Build = "v2"
	s := attach(t, path, o)
	if d, err := Describe(path); err != nil || !d.InUse || d.Clean || d.UsedBy != "v2" || d.CreatedBy != "v1" {
		t.Errorf("in use: %+v %v", d, err)
	}
	must(t, s.Detach())
	o.Geometry.Slots++
	o.Replace = true
	if d, err = Describe(path); err != nil || d.InUse || d.Clean {
		t.Errorf("after a crash: %+v %v", d, err)
	}
	expectRefused(t, d.Attachable(o), Changed, "4096 bytes of unwritten data", path)
	poke(0, 'x')(t, path, nil)
	if d, err = Describe(path); err != nil || d.Refused == nil || d.Refused.Reason != Foreign {
		t.Errorf("foreign: %+v %v", d, err)
	}
	expectRefused(t, d.Attachable(o), Foreign, path)
}

func TestAttachErrors(t *testing.T) {
	dir := sharedDir(t)
	for name, c := range map[string]struct {
		path   string
		change func(*Options)
		want   string
	}{
		"no identity":      {"a", func(o *Options) { o.Identity = "" }, "expected a name"},
		"bad geometry":     {"a", func(o *Options) { o.Geometry.Slots = 0 }, "0 blocks"},
		"no directory":     {"none/a", func(*Options) {}, "no such file"},
		"too large":        {"a", func(o *Options) { o.Geometry.Areas = []Area{{"data", 1 << 45, -1, false}} }, "of memory are available"},
		"no such node":     {"a", func(o *Options) { o.Geometry.Areas = []Area{{"data", 1, 5000, false}} }, "expected 0 to 1023"},
		"no hugetlbfs":     {"a", func(o *Options) { o.Huge = arena.HugeRequire }, "not on hugetlbfs"},
		"path is not free": {"", func(*Options) {}, "is a directory"},
	} {
		o := testOptions()
		c.change(&o)
		if _, err := Attach(filepath.Join(dir, c.path), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("files left: %v", files)
	}
}

// On hugetlbfs, where there is one with free pages.
func TestHugetlbfs(t *testing.T) {
	dir := os.Getenv("LUNAR_HUGETLBFS")
	if dir == "" {
		t.Skip("LUNAR_HUGETLBFS does not name a directory on hugetlbfs")
	}
	path, o := filepath.Join(dir, "lunar-segment-test"), testOptions()
	o.Huge = arena.HugeRequire
	s := attach(t, path, o)
	if s.Pages != arena.HugePages {
		t.Errorf("%v pages", s.Pages)
	}
	must(t, s.Assign(1, 1, 1))
	s.MarkDirty(1, 1)
	must(t, s.Detach())
	s = attach(t, path, o)
	if s.Outcome != Crashed || len(s.Dirty) != 1 {
		t.Errorf("%v, dirty %v", s.Outcome, s.Dirty)
	}
	s.MarkClean(1, 1)
	must(t, s.Remove())
}

// Files of any content are refused, never attached and never changed; see
// FuzzInspect for contents nearer to a segment.
func FuzzAttach(f *testing.F) {
	w, _ := pack(f, statusClean)
	image := make([]byte, 0, len(w)*8)
	for _, word := range w {
		for b := range 8 {
			image = append(image, byte(word>>(8*b)))
		}
	}
	f.Add(image)
	f.Add(image[:len(image)/2])
	f.Add(make([]byte, 3*pageBytes))
	f.Add([]byte("x"))
	path := filepath.Join(sharedDir(f), "cache")
	f.Fuzz(func(t *testing.T, image []byte) {
		must(t, os.WriteFile(path, image, 0o600))
		s, err := Attach(path, Options{Identity: "iqn.2026-11.test:server", Geometry: testGeometry})
		if err == nil {
			t.Logf("attached %v", s.Outcome)
			must(t, s.Detach())
			return
		}
		var refused *Refused
		if after, _ := os.ReadFile(path); !errors.As(err, &refused) || string(after) != string(image) {
			t.Errorf("%v; file unchanged: %v", err, string(after) == string(image))
		}
	})
}
