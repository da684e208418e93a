package protect

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
)

// faultyStore is a store over a file of 2 MiB, in a directory of its own, whose faults
// the test chooses.
func faultyStore(t *testing.T) (dir string, faulty *errstore.Store, s *Store) {
	t.Helper()
	return faultyStoreOf(t, Type1, 2<<20)
}

func faultyStoreOf(t *testing.T, kind Type, size int64) (dir string, faulty *errstore.Store, s *Store) {
	t.Helper()
	dir = t.TempDir()
	file, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: size})
	if err != nil {
		t.Fatal(err)
	}
	faulty = errstore.Wrap(file)
	if s, err = Open(Config{Data: faulty, Path: filepath.Join(dir, "tuples"), Type: kind, Block: 512}); err != nil {
		t.Fatal(err)
	}
	return dir, faulty, s
}

// TestRefusedWrite: blocks of a change of which the data were refused, in part or as a
// whole, have the old data or the new ones and can be read; a block that has neither is
// reported, and damage of before is not made good.
func TestRefusedWrite(t *testing.T) {
	const n = 640 << 10 // more than is looked at at once
	for _, kind := range []backstore.Kind{backstore.Write, backstore.WriteZeroes} {
		for _, written := range []int64{0, 512, 300 << 10, 300<<10 + 100} {
			if kind == backstore.WriteZeroes && written > 0 {
				continue
			}
			dir, faulty, s := faultyStore(t)
			c, was := closed(t, s), backstoretest.Pattern(n, 1)
			now, got := backstoretest.Pattern(n, 2), backstoretest.Buffer(n)
			if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 512 << 10, Data: was}); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(dir, "data"), 1<<20+5) // behind what is written
			faulty.SetRules(errstore.Rule{Kinds: []backstore.Kind{kind}, Err: backstore.ErrNoSpace, Done: written})
			op := backstore.Op{Kind: kind, Off: 512 << 10, Data: now}
			if kind != backstore.Write {
				op.Data, op.Len = nil, n
			}
			if err := c.Do(op); !errors.Is(err, backstore.ErrNoSpace) {
				t.Fatalf("%v after %d bytes: %v", kind, written, err)
			}
			want := append(append([]byte(nil), now[:written]...), was[written:]...)
			for at := int64(0); at < n; at += 512 {
				err := c.Do(backstore.Op{Kind: backstore.Read, Off: 512<<10 + at, Data: got[:512]})
				torn, damaged := at <= written && written < at+512 && written%512 != 0, at == 512<<10
				if (err != nil) != (torn || damaged) || err == nil && !bytes.Equal(got[:512], want[at:at+512]) {
					t.Errorf("%v after %d bytes: block at %d: %v, or other data", kind, written, at, err)
				}
			}
		}
	}
}

// damage flips a bit.
func damage(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	_, err1 := f.ReadAt(b[:], at)
	b[0] ^= 1
	_, err2 := f.WriteAt(b[:], at)
	if err := errors.Join(err1, err2, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestNoRoomForTuples: a change for whose tuples there is no room is refused before
// anything has changed, and once there is room it is made.
func TestNoRoomForTuples(t *testing.T) {
	s := opened(t, t.TempDir(), Type1, 8<<20)
	c, was, now, got := closed(t, s), backstoretest.Pattern(64<<10, 1), backstoretest.Pattern(64<<10, 2), backstoretest.Buffer(64<<10)
	if err := c.Do(backstore.Op{Kind: backstore.Write, Data: was}); err != nil {
		t.Fatal(err)
	}
	s.regions.flushed.Store(-1 << 62)
	if err := c.Do(backstore.Op{Kind: backstore.Flush}); err != nil { // its regions are clean
		t.Fatal(err)
	}
	room := s.regions.reserve
	s.regions.reserve = func(int, int) error { return backstore.ErrNoSpace }
	if err := c.Do(backstore.Op{Kind: backstore.Write, Data: now}); !errors.Is(err, backstore.ErrNoSpace) {
		t.Errorf("found %v", err)
	}
	if err := c.Do(backstore.Op{Kind: backstore.Read, Data: got}); err != nil || !bytes.Equal(got, was) {
		t.Errorf("found %v, or not the old data", err)
	}
	s.regions.reserve = room
	if err := c.Do(backstore.Op{Kind: backstore.Write, Data: now}); err != nil {
		t.Error(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(s.regions.log.fd, &st); err != nil || st.Blocks*512 < tupleOffset+1<<20/512*TupleSize-4096 {
		t.Errorf("found %d bytes of the sidecar file on the medium, %v, expected room for a region", st.Blocks*512, err)
	}
}

// TestStopLeavesNothingInDoubt: after a stop in order damage is found wherever it was
// done; after a flush that failed the regions that were being written stay in doubt.
func TestStopLeavesNothingInDoubt(t *testing.T) {
	for _, broken := range []bool{false, true} {
		dir, faulty, s := faultyStore(t)
		s.regions.flushed.Store(math.MaxInt64 / 2) // none cleans regions
		t.Run("", func(t *testing.T) {
			c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
			if err := c.Do(backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(64<<10, 1)}); err != nil {
				t.Fatal(err)
			}
			if broken {
				faulty.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Flush}, Err: errors.New("no")})
			}
			if err := c.Do(backstore.Op{Kind: backstore.Flush}); (err != nil) != broken {
				t.Fatal(err)
			}
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		damage(t, filepath.Join(dir, "data"), 512*7)
		var found *CheckError
		err := closed(t, opened(t, dir, Type1, 2<<20)).Do(backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(64 << 10)})
		if reported := errors.As(err, &found) && found.LBA == 7; reported == broken {
			t.Errorf("with a flush that failed: %t: found %v", broken, err)
		}
	}
}
