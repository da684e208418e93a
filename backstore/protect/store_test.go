package protect

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
)

// opened opens a protected volume of size bytes in dir.
func opened(t *testing.T, dir string, kind Type, size int64) *Store {
	t.Helper()
	data, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: size})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Data: data, Path: filepath.Join(dir, "tuples"), Type: kind, Block: 512})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// closed closes a store at the end, after its lanes.
func closed(t *testing.T, s *Store) *backstoretest.Client {
	t.Helper()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
}

func TestStore(t *testing.T) {
	for _, ring := range []bool{false, true} {
		backstoretest.Run(t, backstoretest.Subject{Ring: ring, Open: func(t *testing.T) backstore.Store {
			return opened(t, t.TempDir(), Type1, backstoretest.Size)
		}})
	}
}

// TestDamageIsFound: what changes on the medium behind the server's back is
// reported, with the block.
func TestDamageIsFound(t *testing.T) {
	for kind := Type1; kind <= Type3; kind++ {
		dir := t.TempDir()
		c := closed(t, opened(t, dir, kind, 1<<20))
		data := backstoretest.Buffer(64 << 10)
		for i := range data {
			data[i] = byte(rand.Uint32())
		}
		if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 512 << 10, Data: data}); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, "data"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		const damaged = 1024 + 17
		if _, err := f.WriteAt([]byte{data[17*512+100] ^ 1}, damaged*512+100); err != nil {
			t.Fatal(err)
		}
		var found *CheckError
		if err := c.Do(backstore.Op{Kind: backstore.Read, Off: 512 << 10, Data: data}); !errors.As(err, &found) ||
			*found != (CheckError{damaged, GuardField}) {
			t.Errorf("type %d: found %v, expected a wrong guard of block %d", kind, err, damaged)
		}
		// A block in the wrong place has a guard that fits.
		block := make([]byte, 512)
		if _, err := f.ReadAt(block, 1030*512); err != nil {
			t.Fatal(err)
		}
		tuple := make([]byte, 8)
		g, err := os.OpenFile(filepath.Join(dir, "tuples"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		_, err1 := f.WriteAt(block, 1031*512)
		_, err2 := g.ReadAt(tuple, tupleOffset+1030*8)
		_, err3 := g.WriteAt(tuple, tupleOffset+1031*8)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		err = c.Do(backstore.Op{Kind: backstore.Read, Off: 1030 * 512, Data: data[:4096]})
		if misplaced := errors.As(err, &found) && *found == (CheckError{1031, RefField}); misplaced != (kind == Type1) {
			t.Errorf("type %d: a misplaced block: %v", kind, err)
		}
	}
}

// TestTuplesOfTheInitiator are kept and handed out.
func TestTuplesOfTheInitiator(t *testing.T) {
	c := closed(t, opened(t, t.TempDir(), Type2, 1<<20))
	data, tuples, got := backstoretest.Buffer(4096), make([]byte, 64), make([]byte, 64)
	Generate(Type2, 512, data, tuples, 77777)
	for i := range 8 {
		tuples[i*8+2] = 0xab
	}
	if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 4096, Data: data, Tuples: tuples}); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(backstore.Op{Kind: backstore.Read, Off: 4096, Data: data, Tuples: got}); err != nil || !bytes.Equal(got, tuples) {
		t.Errorf("%v: found %x, expected %x", err, got, tuples)
	}
	if err := c.Do(backstore.Op{Kind: backstore.Read, Off: 8192, Data: data, Tuples: got}); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{0xff}, 64)) {
		t.Errorf("%v: found %x, expected all ones for blocks that were never written", err, got)
	}
	if err := c.Do(backstore.Op{Kind: backstore.WriteZeroes, Off: 4096, Len: 4096}); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(backstore.Op{Kind: backstore.Read, Off: 4096, Data: data, Tuples: got}); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{0xff}, 64)) {
		t.Errorf("%v: found %x, expected all ones for blocks that were zeroed", err, got)
	}
}

// TestCrash: any mix of old and new data and tuples of blocks that were being
// written reads without an error after a crash; damage elsewhere is still found.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	const size = 8 << 20
	s := opened(t, dir, Type1, size)
	c := closed(t, s)
	data := backstoretest.Buffer(256 << 10)
	for off := int64(0); off < size; off += 256 << 10 {
		if err := c.Do(backstore.Op{Kind: backstore.Write, Off: off, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	s.regions.flushed.Store(-1 << 62)
	if err := c.Do(backstore.Op{Kind: backstore.Flush}); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = byte(i/512 + 1)
	}
	if err := c.Do(backstore.Op{Kind: backstore.Write, Off: 3 << 20, Data: data}); err != nil {
		t.Fatal(err)
	}
	crashed := t.TempDir()
	for _, name := range []string{"data", "tuples"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "data" { // half of what was written came to the medium
			for i := range 256 << 10 {
				if i/512%2 == 0 {
					b[3<<20+i] = 0
				}
			}
			b[6<<20] ^= 1 // and something else broke
		}
		if err := os.WriteFile(filepath.Join(crashed, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := closed(t, opened(t, crashed, Type1, size))
	if err := again.Do(backstore.Op{Kind: backstore.Read, Off: 3 << 20, Data: data}); err != nil {
		t.Errorf("blocks that were being written: %v", err)
	}
	var found *CheckError
	if err := again.Do(backstore.Op{Kind: backstore.Read, Off: 6 << 20, Data: data}); !errors.As(err, &found) || found.LBA != 6<<20/512 {
		t.Errorf("found %v, expected the damaged block", err)
	}
}

func TestForeignSidecarIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := opened(t, dir, Type1, 1<<20).Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{{Type: Type3, Block: 512}, {Type: Type1, Block: 4096}} {
		data, err := backstore.NewRAM(1<<20, c.Block)
		if err != nil {
			t.Fatal(err)
		}
		c.Data, c.Path = data, filepath.Join(dir, "tuples")
		if s, err := Open(c); err == nil {
			t.Errorf("%+v was accepted", c)
			s.Close()
		} else if err := data.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseAgain: a store that could not be closed goes on, and is closed later.
func TestCloseAgain(t *testing.T) {
	dir := t.TempDir()
	file, err := backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(dir, "data"), Size: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Data: errstore.RefuseClose(file, 2, errors.New("busy")), Path: filepath.Join(dir, "tuples"), Type: Type1, Block: 512}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close of what is closed: %v", err)
		}
	})
	c, data := closed(t, s), backstoretest.Buffer(4096)
	for i := range 2 {
		if err := s.Close(); err == nil {
			t.Fatal("closed though the store below refused")
		}
		if err := c.Do(backstore.Op{Kind: backstore.Write, Off: int64(i) << 20, Data: data}); err != nil {
			t.Errorf("write after a failed Close: %v", err)
		}
	}
}

// asked is an operation that goes to the loop and back without memory of its own.
type asked struct {
	*backstoretest.Client
	op   backstore.Op
	done chan struct{}
}

func (a *asked) Run() {
	if a.Lane.TryNow(&a.op) || a.Lane.Submit(&a.op) {
		a.done <- struct{}{}
	}
}

// TestNoAllocations: nothing is allocated for an operation.
func TestNoAllocations(t *testing.T) {
	c := closed(t, opened(t, t.TempDir(), Type1, 1<<20))
	a := &asked{Client: c, done: make(chan struct{}, 1)}
	a.op.Data = backstoretest.Buffer(4096)
	a.op.Done = func(*backstore.Op) { a.done <- struct{}{} }
	for _, kind := range []backstore.Kind{backstore.Write, backstore.Read} {
		a.op.Kind = kind
		do := func() {
			a.Loop.Post(a)
			<-a.done
		}
		do()
		least := math.Inf(1)
		for range 3 { // the runtime's own on a loaded machine are not an operation's
			least = min(least, testing.AllocsPerRun(50, do))
		}
		if least != 0 || a.op.Err != nil {
			t.Errorf("%v: %v allocations, %v", kind, least, a.op.Err)
		}
	}
}
