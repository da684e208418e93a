package gotgtstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gostor/gotgt/pkg/api"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func emptyFile(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "volume")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFile(t *testing.T, path string) backstore.Store {
	t.Helper()
	s, err := Open("file", backstore.FileConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFileDriver runs gotgt's own driver of files.
func TestFileDriver(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Whole: true, Open: func(t *testing.T) backstore.Store {
		return openFile(t, emptyFile(t, backstoretest.Size))
	}})
}

// TestNullDriver runs gotgt's driver that keeps nothing.
func TestNullDriver(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Forgets: true, Open: func(t *testing.T) backstore.Store {
		s, err := Open("null", backstore.FileConfig{Size: backstoretest.Size})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
}

func TestOpenRefuses(t *testing.T) {
	locked := emptyFile(t, 4096)
	held := openFile(t, locked)
	defer held.Close()
	for name, test := range map[string]struct {
		driver, path string
		size         int64
		want         string
	}{
		"driver":    {"ceph", emptyFile(t, 4096), 0, `gotgt driver "ceph": Backend storage ceph is not found`},
		"no driver": {"", emptyFile(t, 4096), 0, "no name is given"},
		"missing":   {"file", filepath.Join(t.TempDir(), "missing"), 0, "missing: no such file or directory"},
		"directory": {"file", t.TempDir(), 0, "directory"},
		"empty":     {"file", emptyFile(t, 0), 0, "the file is empty"},
		"odd":       {"file", emptyFile(t, 1000), 0, "size 1000 is 488 bytes more than a multiple of the block size 512"},
		"locked":    {"file", locked, 0, "another process holds a lock on it"},
		"no size":   {"null", "", 0, "size 0: expected a positive multiple of 512"},
		"odd size":  {"null", "", 1000, "size 1000: expected a positive multiple of 512"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(test.driver, backstore.FileConfig{Path: test.path, Size: test.size})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, expected %q in it", err, test.want)
			}
		})
	}
}

// TestExchanged: a file that is exchanged while it is opened is not served.
func TestExchanged(t *testing.T) {
	path, other := emptyFile(t, 4096), emptyFile(t, 4096)
	_, err := Open("file", backstore.FileConfig{Path: path, Before: func(backstore.Watched) error { return os.Rename(other, path) }})
	if err == nil || !strings.Contains(err.Error(), "found another file than a moment before") {
		t.Errorf("found %v", err)
	}
}

// TestReadOnly: nothing is written to a store that is only to be read.
func TestReadOnly(t *testing.T) {
	s, err := Open("file", backstore.FileConfig{Path: emptyFile(t, 4096), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	if err := c.Do(backstore.Op{Kind: backstore.Write, Data: make([]byte, 4096)}); !errors.Is(err, backstore.ErrReadOnly) {
		t.Errorf("write: %v", err)
	}
	if err := backstore.Resize(s, 8192); !errors.Is(err, backstore.ErrReadOnly) {
		t.Errorf("resize: %v", err)
	}
}

// TestFlushWrites: what a flush has acknowledged is not in the page cache alone.
func TestFlushWrites(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "gotgtstore")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "volume")
	f, err := os.Create(path)
	if err == nil {
		err = f.Truncate(1 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dirty := func() uint64 {
		var sfs unix.Statfs_t
		var st unix.Cachestat_t
		if err := unix.Fstatfs(int(f.Fd()), &sfs); err != nil || sfs.Type == unix.TMPFS_MAGIC {
			t.Skip("/var/tmp is in memory here: nothing is ever written back")
		}
		if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &st, 0); err != nil {
			t.Skipf("the kernel does not tell of the page cache: %v", err)
		}
		return st.Dirty + st.Writeback
	}
	s := openFile(t, path)
	defer s.Close()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	for name, op := range map[string]backstore.Op{
		"flush": {Kind: backstore.Flush},
		"FUA":   {Kind: backstore.Write, FUA: true, Data: make([]byte, 512)},
	} {
		c.Write(t, 0, backstoretest.Pattern(256<<10, 1))
		c.Must(t, op)
		if n := dirty(); n > 0 {
			t.Errorf("%s: %d pages are not on the disk", name, n)
		}
	}
}

// TestWatched: changes are told before they begin, and when they have ended.
func TestWatched(t *testing.T) {
	s := openFile(t, emptyFile(t, 64<<10)).(*fileStore)
	defer s.Close()
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	var word atomic.Uint64
	s.Watch(&word)
	before, quiet := s.Quiet()
	if !quiet || word.Load() != 0 {
		t.Fatalf("found quiet %v and word %#x before anything", quiet, word.Load())
	}
	c.Read(t, 0, 4096)
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	if now, _ := s.Quiet(); now != before {
		t.Errorf("a read or a flush counts as a change")
	}
	c.Write(t, 0, make([]byte, 4096))
	if now, quiet := s.Quiet(); now == before || !quiet || word.Load() != backstore.Disturbed {
		t.Errorf("found %d changes after %d, quiet %v, word %#x", now, before, quiet, word.Load())
	}
	s.Watch(nil)
	if stamp, err := s.Stamp(); err != nil || stamp.Medium == [3]uint64{} {
		t.Errorf("stamp: %v, %v", stamp, err)
	}
}

// fake is a driver that notes what is asked of it and fails as told.
type fake struct {
	api.BackingStore
	calls []string
	short bool
	err   error
}

func (f *fake) note(call string) error {
	f.calls = append(f.calls, call)
	return f.err
}

func (f *fake) Init(*api.SCSILu, string) error { return nil }
func (f *fake) Open(*api.SCSILu, string) error { return nil }
func (f *fake) Close(*api.SCSILu) error        { return f.note("close") }
func (f *fake) Exit(*api.SCSILu) error         { return f.note("exit") }
func (f *fake) Size(*api.SCSILu) uint64        { return 1 << 20 }
func (f *fake) Write(b []byte, _ int64) error  { return f.note("write") }
func (f *fake) DataSync(int64, int64) error    { return f.note("sync") }
func (f *fake) Read(_, n int64) ([]byte, error) {
	if f.short {
		n--
	}
	return make([]byte, n), f.note("read")
}

// TestCalls expects FUA to be followed by a sync, and errors to come through.
func TestCalls(t *testing.T) {
	data := make([]byte, 4096)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		plugin fake
		op     backstore.Op
		calls  string
		want   string // in the error; empty is none
	}{
		"write":        {fake{}, backstore.Op{Kind: backstore.Write, Data: data}, "write", ""},
		"fua":          {fake{}, backstore.Op{Kind: backstore.Write, FUA: true, Data: data}, "write sync", ""},
		"zeroes":       {fake{}, backstore.Op{Kind: backstore.WriteZeroes, FUA: true, Len: 300 << 10}, "write write sync", ""},
		"read":         {fake{}, backstore.Op{Kind: backstore.Read, FUA: true, Data: data}, "read", ""},
		"flush":        {fake{}, backstore.Op{Kind: backstore.Flush}, "sync", ""},
		"discard":      {fake{}, backstore.Op{Kind: backstore.Discard, Len: 4096}, "", "not supported"},
		"short read":   {fake{short: true}, backstore.Op{Kind: backstore.Read, Data: data}, "read", "read 4095 bytes, expected 4096"},
		"broken read":  {fake{err: broken}, backstore.Op{Kind: backstore.Read, Data: data}, "read", "broken"},
		"full":         {fake{err: &os.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}}, backstore.Op{Kind: backstore.WriteZeroes, Len: 4096}, "write", backstore.ErrNoSpace.Error()},
		"broken write": {fake{err: broken}, backstore.Op{Kind: backstore.Write, FUA: true, Data: data}, "write", "broken"},
		"broken zero":  {fake{err: broken}, backstore.Op{Kind: backstore.WriteZeroes, Len: 4096}, "write", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := open(&test.plugin, "fake", backstore.FileConfig{Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
			err = c.Do(test.op)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, expected %q", err, test.want)
			}
			if got := strings.Join(test.plugin.calls, " "); got != test.calls {
				t.Errorf("calls %q, expected %q", got, test.calls)
			}
		})
	}
}

func TestCloseTellsThePlugin(t *testing.T) {
	plugin := &fake{err: errors.New("broken")}
	s, err := open(plugin, "fake", backstore.FileConfig{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, plugin.err) || strings.Join(plugin.calls, " ") != "close exit" {
		t.Errorf("close: %v after %v, expected both calls and their error", err, plugin.calls)
	}
	if !strings.Contains(s.Info().Describe, "fake") {
		t.Error("the description does not name the driver")
	}
}

// TestFailedSync: after a sync that failed nothing is called stable any more.
func TestFailedSync(t *testing.T) {
	plugin := &fake{}
	s, err := open(plugin, "fake", backstore.FileConfig{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	flush, write := backstore.Op{Kind: backstore.Flush}, backstore.Op{Kind: backstore.Write, Data: make([]byte, 4096)}
	c.Must(t, flush)
	plugin.err = errors.New("broken")
	if err := c.Do(flush); !errors.Is(err, plugin.err) {
		t.Fatalf("found %v", err)
	}
	plugin.err = nil
	if err := c.Do(flush); err == nil || !strings.Contains(err.Error(), "may be lost") {
		t.Errorf("flush: %v", err)
	}
	c.Must(t, write)
	write.FUA = true
	if err := c.Do(write); err == nil {
		t.Error("a FUA write succeeded")
	}
}

// TestWipe: what atomic writes of a file store have left in its log is wiped.
func TestWipe(t *testing.T) {
	dir, data := t.TempDir(), backstoretest.Pattern(64<<10, 5)
	c := backstore.FileConfig{Path: emptyFile(t, 1<<20), Intents: backstore.Intents{Dir: dir}}
	inLog := func() (found bool) {
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("found %v, %v, expected one log", logs, err)
		}
		text, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, data)
	}
	use := func(open func() (backstore.Store, error), op backstore.Op) {
		t.Helper()
		s, err := open()
		if err != nil {
			t.Fatal(err)
		}
		t.Run("", func(t *testing.T) { backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false)).Must(t, op) })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use(func() (backstore.Store, error) { return backstore.OpenFile(c) }, backstore.Op{Kind: backstore.Write, Atomic: true, FUA: true, Data: data})
	if !inLog() {
		t.Fatal("the log has nothing of an atomic write: the test proves nothing")
	}
	use(func() (backstore.Store, error) { return Open("file", c) }, backstore.Op{Kind: backstore.Wipe})
	if inLog() {
		t.Error("the log has the data still")
	}
}
