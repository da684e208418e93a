package backstore_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
)

const (
	page = 4096
	size = 1 << 20 // of a volume, where a test does not care
)

// client serves s on a loop of its own; lane, loop and store end with the test.
func client(t testing.TB, s backstore.Store, ring bool) *backstoretest.Client {
	t.Helper()
	t.Cleanup(func() { _ = s.Close() })
	return backstoretest.NewClient(t, s, backstoretest.NewLoop(t, ring))
}

func closeStore(t *testing.T, s backstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeFile makes a file of n bytes and returns its path.
func writeFile(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "volume")
	if err := os.WriteFile(path, backstoretest.Pattern(n, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFileIsCreatedSparse(t *testing.T) {
	path := filepath.Join(diskDir(t), "volume")
	closeStore(t, openFile(t, backstore.FileConfig{Path: path, Size: 1 << 30}))
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if st.Size != 1<<30 || st.Blocks != 0 || st.Mode&0o777 != 0o600 {
		t.Errorf("created with size %d, %d blocks, mode %o; expected %d, 0, 600", st.Size, st.Blocks, st.Mode&0o777, 1<<30)
	}
}

func TestFileGrows(t *testing.T) {
	path := writeFile(t, page)
	var log bytes.Buffer
	s := openFile(t, backstore.FileConfig{Path: path, Size: size, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	c := client(t, s, true)
	if !bytes.Equal(c.Read(t, 0, page), backstoretest.Pattern(page, 1)) {
		t.Error("growing lost what the file held")
	}
	if !bytes.Equal(c.Read(t, page, page), make([]byte, page)) {
		t.Error("the new part is not zero")
	}
	if want := "from=4096 to=1048576"; !strings.Contains(log.String(), want) {
		t.Errorf("log is %q, expected %q in it", log.String(), want)
	}
}

func TestFileTakesItsOwnSize(t *testing.T) {
	s := must[backstore.Store](t)(backstore.OpenFile(backstore.FileConfig{Path: writeFile(t, 3*page)}))
	defer closeStore(t, s)
	if got := s.Info().Size; got != 3*page {
		t.Errorf("size %d, expected %d", got, 3*page)
	}
}

func TestOpenFileRefuses(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		config backstore.FileConfig
		want   string
	}{
		"missing":           {backstore.FileConfig{Path: missing}, "created only with a size and without read-only"},
		"missing read-only": {backstore.FileConfig{Path: missing, Size: size, ReadOnly: true}, "no such file"},
		"missing directory": {backstore.FileConfig{Path: missing + "/v", Size: size}, "no such file"},
		"odd size":          {backstore.FileConfig{Path: missing, Size: size + 100}, "size 1048676 is 100 bytes more than a multiple of the block size 512"},
		"odd block size":    {backstore.FileConfig{Path: missing, Size: size, BlockSize: 1000}, "block size 1000: expected a power of two"},
		"small block size":  {backstore.FileConfig{Path: missing, Size: size, BlockSize: 256}, "block size 256: expected"},
		"negative size":     {backstore.FileConfig{Path: missing, Size: -512}, "size -512: expected a positive"},
		"odd file":          {backstore.FileConfig{Path: writeFile(t, page+512), BlockSize: page}, "size 4608 is 512 bytes more"},
		"larger":            {backstore.FileConfig{Path: writeFile(t, 2*page), Size: page}, "the file has 8192 bytes, the configured size is 4096"},
		"smaller read-only": {backstore.FileConfig{Path: writeFile(t, page), Size: size, ReadOnly: true}, "the file has 4096 bytes, the configured size is 1048576"},
		"empty":             {backstore.FileConfig{Path: writeFile(t, 0)}, "the file is empty and no size is given"},
		"directory":         {backstore.FileConfig{Path: t.TempDir(), ReadOnly: true}, "not a regular file"},
		"fifo":              {backstore.FileConfig{Path: fifo, Size: size}, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := backstore.OpenFile(test.config)
			if err == nil {
				closeStore(t, s)
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.config.Path) {
				t.Errorf("error %q, expected the path and %q in it", err, test.want)
			}
		})
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Error("a refused file was created")
	}
}

func TestFileIsLocked(t *testing.T) {
	path := writeFile(t, page)
	writer := backstore.FileConfig{Path: path}
	reader := backstore.FileConfig{Path: path, ReadOnly: true}
	first := must[backstore.Store](t)(backstore.OpenFile(writer))
	for _, c := range []backstore.FileConfig{writer, reader} {
		if _, err := backstore.OpenFile(c); !errors.Is(err, unix.EWOULDBLOCK) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("second open: %v, expected the lock to refuse it", err)
		}
	}
	closeStore(t, first)
	one := must[backstore.Store](t)(backstore.OpenFile(reader))
	two := must[backstore.Store](t)(backstore.OpenFile(reader))
	closeStore(t, one)
	closeStore(t, two)
}

func TestFileKeepsItsData(t *testing.T) {
	for name, direct := range map[string]bool{"buffered": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			config := backstore.FileConfig{Path: filepath.Join(diskDir(t), "v"), Direct: direct, BlockSize: page}
			want := backstoretest.Pattern(size, 2)
			s := openFile(t, config)
			loop := backstoretest.NewLoop(t, true)
			c := backstoretest.Client{Loop: loop, Lane: must[backstore.Lane](t)(s.Lane(loop))}
			c.Write(t, 0, want)
			backstoretest.On(loop, c.Lane.Close)
			closeStore(t, s)
			again := client(t, openFile(t, config), false)
			if !bytes.Equal(again.Read(t, 0, size), want) {
				t.Error("the file opened again does not hold what was written")
			}
		})
	}
}

func TestReadOnlyFile(t *testing.T) {
	s := must[backstore.Store](t)(backstore.OpenFile(backstore.FileConfig{Path: writeFile(t, 2*page), ReadOnly: true}))
	c := client(t, s, true)
	if info := s.Info(); !info.ReadOnly || info.Discard || info.VolatileCache {
		t.Errorf("info %+v, expected read-only without discard and volatile cache", info)
	}
	for _, op := range []backstore.Op{
		{Kind: backstore.Write, Data: backstoretest.Buffer(page)},
		{Kind: backstore.WriteZeroes, Len: page},
		{Kind: backstore.Discard, Len: page},
	} {
		if err := c.Do(op); !errors.Is(err, backstore.ErrReadOnly) {
			t.Errorf("%v: %v, expected ErrReadOnly", op.Kind, err)
		}
	}
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	if !bytes.Equal(c.Read(t, 0, 2*page), backstoretest.Pattern(2*page, 1)) {
		t.Error("the data read is not that of the file")
	}
}

// TestTruncatedFile expects errors, not zeroes, and none that end by
// themselves: a write must not make the lost bytes zeroes either.
func TestTruncatedFile(t *testing.T) {
	dirs := map[string]func(testing.TB) string{"memory": memoryDir, "disk": diskDir}
	for place, dir := range dirs {
		for mode, ring := range modes {
			for name, direct := range map[string]bool{"buffered": false, "direct": true} {
				t.Run(place+"/"+mode+"/"+name, func(t *testing.T) {
					testTruncated(t, filepath.Join(dir(t), "v"), ring, direct)
				})
			}
		}
	}
}

func testTruncated(t *testing.T, path string, ring, direct bool) {
	s := openFile(t, backstore.FileConfig{Path: path, Direct: direct, BlockSize: page, Logger: slog.New(slog.DiscardHandler)})
	c := client(t, s, ring)
	c.Write(t, 0, backstoretest.Pattern(size, 1))
	if err := os.Truncate(path, size/2+512); err != nil {
		t.Fatal(err)
	}
	c.Read(t, 0, size/2)
	for _, op := range []backstore.Op{
		{Kind: backstore.Read, Off: size / 2, Data: backstoretest.Buffer(2 * page)},
		{Kind: backstore.Write, Off: size - page, Data: backstoretest.Buffer(page)},
		{Kind: backstore.Read, Off: size - page, Data: backstoretest.Buffer(page)},
		{Kind: backstore.Flush},
	} {
		if err := c.Do(op); !errors.Is(err, backstore.ErrTruncated) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v at %d: %v, expected ErrTruncated", op.Kind, op.Off, err)
		}
	}
}

func TestDeletedFileGoesOn(t *testing.T) {
	path := filepath.Join(diskDir(t), "v")
	c := client(t, openFile(t, backstore.FileConfig{Path: path}), true)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := backstoretest.Pattern(page, 1)
	c.Write(t, page, want)
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	if !bytes.Equal(c.Read(t, page, page), want) {
		t.Error("the data read differs from the data written")
	}
}

// TestNoSpace fills a file system of its own. What was stored stays readable,
// and writing goes on when there is room again.
func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	c := client(t, openFile(t, backstore.FileConfig{Path: filepath.Join(dir, "v")}), true)
	want := backstoretest.Pattern(128<<10, 1)
	c.Write(t, 0, want)
	for _, op := range []backstore.Op{
		{Kind: backstore.Write, Off: 256 << 10, Data: backstoretest.Buffer(256 << 10)},
		{Kind: backstore.WriteZeroes, Off: 512 << 10, Len: 256 << 10},
	} {
		if err := c.Do(op); !errors.Is(err, backstore.ErrNoSpace) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%v: %v, expected ErrNoSpace", op.Kind, err)
		}
	}
	if !bytes.Equal(c.Read(t, 0, len(want)), want) {
		t.Error("what was stored before changed")
	}
	c.Must(t, backstore.Op{Kind: backstore.Discard, Off: 128 << 10, Len: size - 128<<10})
	c.Write(t, 512<<10, want[:64<<10])
}

// TestWithoutAbilities runs on a kernel that refuses what is optional.
func TestWithoutAbilities(t *testing.T) {
	for name, config := range map[string]backstore.FileConfig{"buffered": {}, "sync": {Sync: true}} {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Ring: true, Whole: true, Open: func(t *testing.T) backstore.Store {
				config.Path = filepath.Join(diskDir(t), "v")
				config.Size = backstoretest.Size
				s := openFile(t, config)
				backstore.Forgo(s)
				return s
			}})
		})
	}
}

// TestLongRangesLeaveTheThread covers what a file in memory does not do inline.
func TestLongRangesLeaveTheThread(t *testing.T) {
	for mode, ring := range modes {
		t.Run(mode, func(t *testing.T) {
			s := openFile(t, backstore.FileConfig{Path: filepath.Join(memoryDir(t), "v"), Size: 2 * backstore.InlineSpan})
			c := client(t, s, ring)
			for _, kind := range []backstore.Kind{backstore.WriteZeroes, backstore.Discard} {
				c.Write(t, 0, backstoretest.Pattern(2*backstore.InlineSpan, 1))
				op := backstore.Op{Kind: kind, Len: 2 * backstore.InlineSpan}
				now := true
				backstoretest.On(c.Loop, func() { now = c.Lane.TryNow(&op) })
				if now {
					t.Errorf("%v of %d bytes was done inline", kind, op.Len)
				}
				c.Must(t, op)
				if !bytes.Equal(c.Read(t, 0, 2*backstore.InlineSpan), make([]byte, 2*backstore.InlineSpan)) {
					t.Errorf("%v left something", kind)
				}
			}
		})
	}
}

// TestCachedReadsAreInline expects TryNow to serve what was just written, and
// the rest to leave no trace.
func TestCachedReadsAreInline(t *testing.T) {
	path := filepath.Join(diskDir(t), "v")
	c := client(t, openFile(t, backstore.FileConfig{Path: path}), true)
	want := backstoretest.Pattern(page, 1)
	c.Write(t, 0, want)
	op := backstore.Op{Kind: backstore.Read, Data: make([]byte, page)}
	now := false
	backstoretest.On(c.Loop, func() { now = c.Lane.TryNow(&op) })
	if !now || op.Err != nil || !bytes.Equal(op.Data, want) {
		t.Errorf("TryNow of a cached page: %v, error %v", now, op.Err)
	}
}

func TestLaneNeedsWorkers(t *testing.T) {
	s := openFile(t, backstore.FileConfig{Path: filepath.Join(t.TempDir(), "v")})
	defer closeStore(t, s)
	loop := must[*evloop.Loop](t)(evloop.New(evloop.Config{Name: "bare", CPU: -1, Node: -1}))
	defer loop.Stop()
	if _, err := s.Lane(loop); err == nil || !strings.Contains(err.Error(), "has no workers") {
		t.Errorf("lane without workers: %v", err)
	}
}
