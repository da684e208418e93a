package protect

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// fill writes all of a volume.
func fill(t *testing.T, c *backstoretest.Client, size int, seed uint64) []byte {
	t.Helper()
	data := backstoretest.Pattern(size, seed)
	c.Write(t, 0, data)
	return data
}

// TestResizeForgetsTuples: what a volume had behind its end is not compared with
// what it has there when it has grown again.
func TestResizeForgetsTuples(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir, Type1, 1<<20)
	c := closed(t, s)
	data := fill(t, c, 1<<20, 1)
	for _, size := range []int64{512 * 7, 1 << 20, 100<<10 + 512, 3 << 20} {
		if err := s.Resize(size); err != nil {
			t.Fatal(err)
		}
		data = append(bytes.Clone(data[:min(len(data), int(size))]), make([]byte, max(0, int(size)-len(data)))...)
		if !bytes.Equal(c.Read(t, 0, int(size)), data) {
			t.Errorf("%d bytes: the data are not what they were", size)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "tuples")); err != nil || info.Size() != s.size.fileSize() {
		t.Errorf("found %v, %v, expected a sidecar file of %d bytes", info, err, s.size.fileSize())
	}
}

// TestOpenAfterCrashInResize: every step of a resize leaves files that open, and
// nothing is reported wrong that is not.
func TestOpenAfterCrashInResize(t *testing.T) {
	const small, big = 100<<10 + 512, 1 << 20
	at := func(n int64) shape { return shape{Type1, 512, n, version} }
	for name, crash := range map[string]struct {
		was, is int64 // sizes of the volume before, and of its data after
		header  int64 // what the header promises
		stale   bool  // tuples are left behind the end
	}{
		"grown, old header":             {small, big, small, false},
		"not cut, new header":           {big, big, small, true},
		"cut, tuples left":              {big, small, small, true},
		"cut, tuples left in last page": {small + 4096, small, small, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := opened(t, dir, Type1, crash.was)
			c := closed(t, s)
			data := fill(t, c, int(crash.was), 2)
			c.Must(t, backstore.Op{Kind: backstore.Flush})
			crashed := t.TempDir()
			for _, file := range []string{"data", "tuples"} {
				b, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if file == "tuples" {
					copy(b, at(crash.header).header())
				} else {
					b = append(b, make([]byte, big)...)[:crash.is]
				}
				if err := os.WriteFile(filepath.Join(crashed, file), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again := opened(t, crashed, Type1, crash.is)
			c2 := closed(t, again)
			want := append(bytes.Clone(data[:min(crash.was, crash.is)]), make([]byte, max(0, crash.is-crash.was))...)
			if !bytes.Equal(c2.Read(t, 0, len(want)), want) {
				t.Error("the data are not what they were")
			}
			if err := again.Resize(2 * big); err != nil {
				t.Fatal(err)
			}
			if got := c2.Read(t, 0, 2*big); !bytes.Equal(got, append(want, make([]byte, 2*big-len(want))...)) {
				t.Error("the data are not what they were after it has grown")
			}
		})
	}
}

// TestResizeOfRegions: regions become larger with the volume, and what was being
// changed is found after a crash all the same.
func TestResizeOfRegions(t *testing.T) {
	const big = maxRegions<<regionShift + 1<<30
	dir := t.TempDir()
	s := opened(t, dir, Type1, 1<<20)
	c := closed(t, s)
	data := fill(t, c, 1<<20, 3)
	if err := s.Resize(big); err != nil {
		t.Fatal(err)
	}
	if s.regions.shift != regionShift+1 || !s.regions.log.has(0) || !s.regions.log.has(maxRegions-1) {
		t.Errorf("found regions of 2^%d bytes, expected 2^%d and that all are dirty", s.regions.shift, regionShift+1)
	}
	tail := backstoretest.Pattern(64<<10, 4)
	c.Write(t, big-int64(len(tail)), tail)
	if !bytes.Equal(c.Read(t, 0, len(data)), data) || !bytes.Equal(c.Read(t, big-int64(len(tail)), len(tail)), tail) {
		t.Error("the data are not what they were")
	}
	s.regions.flushed.Store(-1 << 62)
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	if err := s.Resize(1 << 20); err != nil {
		t.Fatal(err)
	}
	if s.regions.shift != regionShift || !bytes.Equal(c.Read(t, 0, len(data)), data) {
		t.Error("the data are not what they were")
	}
}
