package protect

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// crashed copies a volume that is open, as kill -9 leaves it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	out := t.TempDir()
	for _, name := range []string{"data", "tuples"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// flip turns a bit of a file over.
func flip(t *testing.T, path string, bit int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	_, err1 := f.ReadAt(b[:], bit/8)
	b[0] ^= 1 << (bit % 8)
	_, err2 := f.WriteAt(b[:], bit/8)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
}

// reopened opens what crashed has left, and returns what was logged.
func reopened(t *testing.T, dir string, size int64, readOnly bool) (*Store, string) {
	t.Helper()
	data, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: size, ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s, err := Open(Config{Data: data, Path: filepath.Join(dir, "tuples"), Type: Type1, Block: 512, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s, log.String()
}

// TestEveryBitOfTheLog: a bit that flips in it is noticed, and has no region looked at
// that was not being written.
func TestEveryBitOfTheLog(t *testing.T) {
	for _, marks := range [][]byte{nil, {1 << 3}} {
		j := &journal{version: version}
		copy(j.bits[:], marks)
		j.encode()
		for bit := range logSize * 8 {
			j.page[bit/8] ^= 1 << (bit % 8)
			j.decode()
			sector := bit / 8 / sectorSize
			want := [logSize]byte{}
			if sector != 0 {
				copy(want[:], marks)
			}
			if !slices.Equal(j.damaged, []int{sector}) || j.bits != want {
				t.Errorf("bit %d: found damage in sectors %v, expected it in %d, and no region looked at for it", bit, j.damaged, sector)
			}
			j.page[bit/8] ^= 1 << (bit % 8)
		}
		if j.decode(); j.damaged != nil || j.has(3) != (marks != nil) {
			t.Errorf("found damage in sectors %v, and a mark %t", j.damaged, j.has(3))
		}
	}
}

// TestDamagedLogBlessesNothing: after a crash a block that the medium has damaged is
// reported although the log is damaged, which is told once.
func TestDamagedLogBlessesNothing(t *testing.T) {
	const size = 4 << 20
	dir := t.TempDir()
	c := closed(t, opened(t, dir, Type1, size))
	c.Write(t, 0, backstoretest.Pattern(size, 1))
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	left := crashed(t, dir)
	flip(t, filepath.Join(left, "tuples"), logOffset*8+100)
	flip(t, filepath.Join(left, "data"), 2<<20*8)
	s, log := reopened(t, left, size, false)
	if !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "to=4194304") {
		t.Errorf("found %s, expected that the damage is told", log)
	}
	var wrong *CheckError
	err := closed(t, s).Do(backstore.Op{Kind: backstore.Read, Off: 2 << 20, Data: backstoretest.Buffer(4096)})
	if !errors.As(err, &wrong) || wrong.LBA != 2<<20/512 {
		t.Errorf("found %v, expected the damaged block", err)
	}
	if _, log := reopened(t, crashed(t, left), size, false); strings.Contains(log, "level=ERROR") {
		t.Errorf("found again %s", log)
	}
}

// TestLogOfBefore: one without checksums is understood, also where its regions were
// smaller, and gets them.
func TestLogOfBefore(t *testing.T) {
	for _, size := range []int64{1 << 20, maxRegions<<regionShift + 1<<20} {
		dir := t.TempDir()
		was := shape{Type1, 512, size, unsummed}
		block := backstoretest.Pattern(512, 2)
		tuple := make([]byte, TupleSize)
		Generate(Type1, 512, block, tuple, uint32(size/512-1))
		tuple[0] ^= 1 // as if it were of other data
		invert(tuple)
		j := &journal{version: unsummed}
		last := was.regions() - 1
		j.bits[last/8] = 1 << (last % 8)
		j.encode()
		if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, parts := range map[string]map[int64][]byte{
			"data":   {size - 512: block},
			"tuples": {0: was.header(), logOffset: j.page[:], was.end() - TupleSize: tuple, was.fileSize() - 1: {0}},
		} {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			for at, b := range parts {
				if name == "tuples" && at == was.fileSize()-1 && was.end() == was.fileSize() {
					continue
				}
				if _, err := f.WriteAt(b, at); err != nil {
					t.Fatal(err)
				}
			}
			f.Close()
		}
		s, log := reopened(t, dir, size, true)
		if err := s.Close(); err != nil || log != "" {
			t.Errorf("read-only: %v, %s", err, log)
		}
		s, log = reopened(t, dir, size, false)
		if !strings.Contains(log, "blocks-made-anew=1") {
			t.Errorf("%d bytes: found %q, expected that the region is looked at", size, log)
		}
		if got := closed(t, s).Read(t, size-512, 512); !bytes.Equal(got, block) {
			t.Error("the data are not what they were")
		}
		h := make([]byte, headerSize)
		f, err := os.Open(filepath.Join(dir, "tuples"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(h, 0); err != nil || !bytes.Equal(h, was.of(version).header()) {
			t.Errorf("found header %x, %v, expected one of version %d", h, err, version)
		}
		f.Close()
	}
}
