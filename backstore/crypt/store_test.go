package crypt

import (
	"bytes"
	"crypto/aes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	oracle "golang.org/x/crypto/xts"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// encrypted opens data in a directory, with a header that is made if there is none.
func encrypted(t testing.TB, dir string, data backstore.Store, block int) *Store {
	t.Helper()
	path := filepath.Join(dir, "header")
	if there, err := HasHeader(path); err != nil || !there {
		if err := errors.Join(err, Create(path, key(1), block)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(Config{Data: data, Path: path, Key: key(1), Block: block})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fileIn opens the file "data" in a directory.
func fileIn(t testing.TB, dir string, direct bool, block int) backstore.Store {
	t.Helper()
	path := filepath.Join(dir, "data")
	s, err := backstore.OpenFile(backstore.FileConfig{
		Path: path, Size: backstoretest.Size, BlockSize: block, Direct: direct, Intents: backstore.Intents{Dir: dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// client closes the store at the end, after its lanes.
func client(t testing.TB, s *Store, ring bool) *backstoretest.Client {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return backstoretest.NewClient(t, s, backstoretest.NewLoop(t, ring))
}

func TestStore(t *testing.T) {
	for name, subject := range map[string]backstoretest.Subject{
		"file": {Open: func(t *testing.T) backstore.Store {
			dir := t.TempDir()
			return encrypted(t, dir, fileIn(t, dir, false, 512), 512)
		}},
		"ring": {Ring: true, Open: func(t *testing.T) backstore.Store {
			dir := t.TempDir()
			return encrypted(t, dir, fileIn(t, dir, false, 512), 512)
		}},
		"memory": {Open: func(t *testing.T) backstore.Store {
			m, err := memstore.New(memstore.Config{Size: backstoretest.Size, Async: true})
			if err != nil {
				t.Fatal(err)
			}
			return encrypted(t, t.TempDir(), m, 512)
		}},
	} {
		t.Run(name, func(t *testing.T) { backstoretest.Run(t, subject) })
	}
}

// TestDirect: O_DIRECT wants aligned memory, which scratch memory is.
func TestDirect(t *testing.T) {
	dir := diskDir(t)
	s := encrypted(t, dir, fileIn(t, dir, true, 4096), 4096)
	c := client(t, s, true)
	for _, n := range []int{4096, smallSize, smallSize + 4096, largeSize, largeSize + 8192} {
		data := backstoretest.Pattern(n, uint64(n))
		c.Write(t, 8192, data)
		if !bytes.Equal(c.Read(t, 8192, n), data) {
			t.Errorf("%d bytes came back otherwise", n)
		}
	}
}

// diskDir returns a directory on a file system that has direct I/O.
func diskDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "crypt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestNothingInClear: what lies on disk is what another XTS makes of the data, with
// the number of the block as the tweak, also in the log of atomic writes; and the
// memory of who writes stays as it is.
func TestNothingInClear(t *testing.T) {
	for _, block := range []int{512, 4096} {
		dir := t.TempDir()
		s := encrypted(t, dir, fileIn(t, dir, false, block), block)
		h, m, err := (&Config{Path: filepath.Join(dir, "header"), Key: key(1), Block: block}).open(true)
		if err != nil {
			t.Fatal(err)
		}
		_ = h.place.Close()
		other, err := oracle.NewCipher(aes.NewCipher, m[:])
		if err != nil {
			t.Fatal(err)
		}
		c := client(t, s, false)
		secret := []byte("a secret that is told to nobody.")
		data := backstoretest.Buffer(300 << 10)
		copy(data, bytes.Repeat(secret, len(data)/len(secret)+1))
		kept := bytes.Clone(data)
		const at = 64 << 10
		c.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Off: at, Data: data})
		c.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Atomic: true, Off: at, Data: data[:16<<10]})
		c.Must(t, backstore.Op{Kind: backstore.Flush})
		if !bytes.Equal(data, kept) {
			t.Fatal("the data that were written have changed")
		}
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("found intent logs %q, %v, expected one", logs, err)
		}
		for _, name := range []string{"data", filepath.Base(logs[0]), "header"} {
			raw, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(raw) == 0 {
				t.Fatal(len(raw), err)
			}
			if bytes.Contains(raw, secret[:16]) {
				t.Errorf("%s has clear text", name)
			}
			if name != "data" {
				continue
			}
			for n := 0; n < len(data); n += block {
				unit := make([]byte, block)
				other.Encrypt(unit, data[n:][:block], uint64(at+n)/uint64(block))
				if !bytes.Equal(unit, raw[at+n:][:block]) {
					t.Fatalf("block %d of %d bytes is another cipher text", (at+n)/block, block)
				}
			}
		}
	}
}

// TestReopen: data are there again with the same keys, and with others not at all.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	data := backstoretest.Pattern(8192, 3)
	t.Run("write", func(t *testing.T) {
		client(t, encrypted(t, dir, fileIn(t, dir, false, 512), 512), false).Write(t, 0, data)
	})
	below := fileIn(t, dir, false, 512)
	_, err := Open(Config{Data: below, Path: filepath.Join(dir, "header"), Key: key(2), Block: 512})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "header")) || !strings.Contains(err.Error(), "old-key-file") {
		t.Errorf("another key: %v", err)
	}
	if err := Create(filepath.Join(dir, "header"), key(2), 512); err == nil {
		t.Error("a header was made over another")
	}
	s, err := Open(Config{Data: below, Path: filepath.Join(dir, "header"), Key: key(2), OldKey: key(1), Block: 512})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(client(t, s, false).Read(t, 0, len(data)), data) {
		t.Error("other data after the wrapping key was changed")
	}
}

// TestErase: what was written is gone, with the copy of its key; what is written
// later is there after a restart.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	data := backstoretest.Pattern(64<<10, 3)
	before, err := os.ReadFile(filepath.Join(dir, "header"))
	t.Run("erase", func(t *testing.T) {
		s := encrypted(t, dir, fileIn(t, dir, false, 512), 512)
		if before, err = os.ReadFile(filepath.Join(dir, "header")); err != nil {
			t.Fatal(err)
		}
		was, _ := s.Stamp()
		c := client(t, s, false)
		c.Write(t, 0, data)
		c.Must(t, backstore.Op{Kind: backstore.Erase, Len: backstoretest.Size})
		now, _ := s.Stamp()
		if was.Medium == now.Medium {
			t.Error("it is the same medium still")
		}
		if got := c.Read(t, 0, len(data)); shares(got, data) {
			t.Error("data are there still")
		}
		if !bytes.Equal(c.Read(t, 128<<10, 4096), make([]byte, 4096)) {
			t.Error("what was never written is no zeroes any more")
		}
		c.Write(t, 4096, data[:4096])
	})
	raw, err := os.ReadFile(filepath.Join(dir, "header"))
	if err != nil || bytes.Contains(raw, before[wrappedAt:sumAt]) {
		t.Errorf("the old key is in the header file still: %v", err)
	}
	c := client(t, encrypted(t, dir, fileIn(t, dir, false, 512), 512), false)
	if !bytes.Equal(c.Read(t, 4096, 4096), data[:4096]) {
		t.Error("what was written after the erasure is gone")
	}
	if shares(c.Read(t, 0, 4096), data) {
		t.Error("data are there again")
	}
}

// shares reports whether any sixteen bytes of a are at the same place in b.
func shares(a, b []byte) bool {
	for i := 0; i+16 <= len(a); i += 16 {
		if bytes.Equal(a[i:i+16], b[i:i+16]) {
			return true
		}
	}
	return false
}

// TestEraseFails: a header that cannot be written leaves the old key in force; one of
// which nobody knows what it has now ends the volume.
func TestEraseFails(t *testing.T) {
	for cut, want := range map[string]int{"old": 1, "doubt": -1} {
		dir := t.TempDir()
		s := encrypted(t, dir, fileIn(t, dir, false, 512), 512)
		real := s.header.place
		c := client(t, s, false)
		data := backstoretest.Pattern(4096, 3)
		c.Write(t, 0, data)
		s.header.place = &slots{file: &disk{cut: want, fails: want > 0}}
		err := c.Do(backstore.Op{Kind: backstore.Erase, Len: backstoretest.Size})
		s.header.place = real
		if !errors.Is(err, errCut) {
			t.Errorf("%s: %v", cut, err)
		}
		op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(4096)}
		_ = c.Run(&op)
		if kept := op.Err == nil && bytes.Equal(op.Data, data); kept != (cut == "old") || !kept && !errors.Is(op.Err, backstore.ErrGone) {
			t.Errorf("%s: read %v", cut, op.Err)
		}
	}
}

// TestEraseWaits: an erasure does not end before what was under way with the old key.
func TestEraseWaits(t *testing.T) {
	dir := t.TempDir()
	slow := errstore.Wrap(fileIn(t, dir, false, 512), errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	c := client(t, encrypted(t, dir, slow, 512), false)
	data := backstoretest.Pattern(4096, 3)
	write := backstore.Op{Kind: backstore.Write, Data: data}
	written := c.Go(&write)
	erase := backstore.Op{Kind: backstore.Erase, Len: backstoretest.Size}
	erased := c.Go(&erase)
	c.Read(t, 4096, 512) // a turn of the loop
	select {
	case <-erased:
		t.Fatal("it has ended")
	default:
	}
	slow.SetRules()
	for slow.Release(-1) == 0 {
	}
	<-written
	<-erased
	if err := errors.Join(write.Err, erase.Err); err != nil {
		t.Fatal(err)
	}
	if shares(c.Read(t, 0, 4096), data) {
		t.Error("data are there still")
	}
}

// TestScratchIsBounded: more writes than there is memory for wait for each other, and
// all arrive.
func TestScratchIsBounded(t *testing.T) {
	dir := t.TempDir()
	slow := errstore.Wrap(fileIn(t, dir, false, 512), errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	c := client(t, encrypted(t, dir, slow, 512), false)
	const many, size = 3 * smallCount, 1024
	var ops [many]backstore.Op
	var done [many]<-chan struct{}
	for i := range ops {
		ops[i] = backstore.Op{Kind: backstore.Write, Off: int64(i) * size, Data: backstoretest.Pattern(size, uint64(i))}
		done[i] = c.Go(&ops[i])
	}
	c.Read(t, 0, 512)
	if n := slow.Held(); n != smallCount {
		t.Errorf("%d writes are under way, expected %d", n, smallCount)
	}
	for i := range ops {
		for slow.Release(-1) == 0 {
			select {
			case <-done[i]:
			default:
				continue
			}
			break
		}
		<-done[i]
	}
	for i := range ops {
		if ops[i].Err != nil || !bytes.Equal(c.Read(t, ops[i].Off, size), ops[i].Data) {
			t.Fatalf("write %d: %v", i, ops[i].Err)
		}
	}
}

// TestFaultsPassThrough: errors from below arrive, and give everything back.
func TestFaultsPassThrough(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	faulty := errstore.Wrap(fileIn(t, dir, false, 512))
	c := client(t, encrypted(t, dir, faulty, 512), false)
	for _, async := range []bool{false, true} {
		for _, n := range []int{512, smallSize, largeSize, largeSize + smallSize} {
			faulty.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Read, backstore.Write}, Err: broken, Async: async})
			for range 2 * largeCount {
				if err := c.Do(backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(n, 1)}); !errors.Is(err, broken) {
					t.Fatalf("write of %d bytes: %v", n, err)
				}
				if err := c.Do(backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(n)}); !errors.Is(err, broken) {
					t.Fatalf("read of %d bytes: %v", n, err)
				}
			}
			faulty.SetRules()
			data := backstoretest.Pattern(n, uint64(n))
			c.Write(t, 0, data)
			if !bytes.Equal(c.Read(t, 0, n), data) {
				t.Errorf("%d bytes after the faults", n)
			}
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	data := backstoretest.Pattern(4096, 3)
	t.Run("write", func(t *testing.T) {
		client(t, encrypted(t, dir, fileIn(t, dir, false, 512), 512), false).Write(t, 0, data)
	})
	below, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, encrypted(t, dir, below, 512), false)
	if !bytes.Equal(c.Read(t, 0, 4096), data) {
		t.Error("other data")
	}
	if err := c.Do(backstore.Op{Kind: backstore.Erase, Len: backstoretest.Size}); !errors.Is(err, backstore.ErrUnsupported) {
		t.Errorf("erase: %v", err)
	}
}

func TestBlank(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v")
	for _, v := range []struct {
		fill  func(f *os.File) error
		blank bool
	}{
		{func(*os.File) error { return nil }, true},
		{func(f *os.File) error { return f.Truncate(5 << 20) }, true},
		{func(f *os.File) error { _, err := f.WriteAt(make([]byte, 2<<20), 1<<20); return err }, true},
		{func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 5<<20-1); return err }, false},
	} {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = errors.Join(v.fill(f), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if blank, err := Blank(path); err != nil || blank != v.blank {
			t.Errorf("found %v, %v, expected %v", blank, err, v.blank)
		}
	}
	if blank, err := Blank("/dev/null"); err != nil || blank {
		t.Errorf("a device is blank: %v", err)
	}
}

// TestNoAllocations: on the event thread and on workers.
func TestNoAllocations(t *testing.T) {
	dir := t.TempDir()
	c := client(t, encrypted(t, dir, fileIn(t, dir, false, 512), 512), false)
	for _, n := range []int{4096, smallSize + 4096, largeSize} {
		for _, kind := range []backstore.Kind{backstore.Write, backstore.Read} {
			r := backstoretest.NewRoundTrip(c, kind, n)
			r.Do()
			if allocs := testing.AllocsPerRun(20, r.Do); allocs != 0 || r.Op.Err != nil {
				t.Errorf("%v of %d bytes: %v allocations, %v", kind, n, allocs, r.Op.Err)
			}
		}
	}
}
