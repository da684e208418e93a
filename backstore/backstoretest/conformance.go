package backstoretest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"lunar/backstore"
)

// Size is that of the stores that the tests open, in bytes.
const Size = 512 << 10

const (
	sector = 512
	page   = 4096
)

// Subject is a kind of store under test.
type Subject struct {
	// Open returns an empty store of Size bytes, all zeroes. The tests close it.
	Open func(t *testing.T) backstore.Store
	// Ring gives the loops an io_uring.
	Ring bool
	// Forgets says that writes are lost: everything reads as zeroes.
	Forgets bool
	// Whole says that Map knows no holes.
	Whole bool
	// Fixed says that the size cannot be changed from here.
	Fixed bool
	// BlockSize is that of the logical unit in bytes; 0 is 512.
	BlockSize int
}

// All holds the tests that every Store has to pass.
var All = map[string]func(*testing.T, Subject){
	"ReadBack":         testReadBack,
	"SubmitAlone":      testSubmitAlone,
	"UnalignedTryNow":  testUnalignedTryNow,
	"FUA":              testFUA,
	"Flush":            testFlush,
	"Discard":          testDiscard,
	"Atomic":           testAtomic,
	"WriteZeroes":      testWriteZeroes,
	"ZeroesOfTheWhole": testZeroesOfTheWhole,
	"MapAfterDiscard":  testMapAfterDiscard,
	"MapCoversAll":     testMapCoversAll,
	"OutOfRange":       testOutOfRange,
	"Empty":            testEmpty,
	"ManyInFlight":     testManyInFlight,
	"TwoLanes":         testTwoLanes,
	"OverlappingLanes": testOverlappingLanes,
	"Close":            testClose,
	"Resize":           testResize,
	"ResizeInUse":      testResizeInUse,
	"Model":            testModel,
}

// Run runs All on the subject.
func Run(t *testing.T, s Subject) {
	for name, test := range All {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// open returns a store and a client of it. Cleanups run last-in first-out: the
// lane closes, then the loop stops, then the store closes.
func (s Subject) open(t *testing.T) (backstore.Store, *Client) {
	t.Helper()
	store := s.Open(t)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, NewClient(t, store, NewLoop(t, s.Ring))
}

// kept returns what a store that was given data reads back.
func (s Subject) kept(data []byte) []byte {
	if s.Forgets {
		return make([]byte, len(data))
	}
	return data
}

func (s Subject) expect(t Fataler, c *Client, off int64, want []byte) {
	t.Helper()
	got := c.Read(t, off, len(want))
	if i := difference(got, want); i >= 0 {
		t.Fatalf("byte %d (%d of the %d read) is %#x, expected %#x", off+int64(i), i, len(want), got[i], want[i])
	}
}

// difference returns the first index where a and b differ, -1 if none.
func difference(a, b []byte) int {
	if bytes.Equal(a, b) { // the race detector looks at every byte of the loop
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func testReadBack(t *testing.T, s Subject) {
	_, c := s.open(t)
	s.expect(t, c, 0, make([]byte, Size))
	for i, r := range []struct {
		off int64
		n   int
	}{
		{0, page}, {page, sector * 16}, {Size - page, page}, {Size / 2, Size / 2}, {0, Size},
	} {
		data := Pattern(r.n, uint64(i))
		c.Write(t, r.off, data)
		s.expect(t, c, r.off, s.kept(data))
	}
}

func testSubmitAlone(t *testing.T, s Subject) {
	_, c := s.open(t)
	data := Pattern(3*page, 1)
	if err := c.Submit(&backstore.Op{Kind: backstore.Write, Off: page, Data: data}); err != nil {
		t.Fatal(err)
	}
	got := Buffer(3 * page)
	if err := c.Submit(&backstore.Op{Kind: backstore.Read, Off: page, Data: got}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, s.kept(data)) {
		t.Fatal("the data read differs from the data written")
	}
}

// testUnalignedTryNow also checks that a refusal leaves the op alone.
func testUnalignedTryNow(t *testing.T, s Subject) {
	_, c := s.open(t)
	for _, kind := range []backstore.Kind{backstore.Write, backstore.Read} {
		data := Pattern(page+1, 9)[1:]
		want := slices.Clone(data)
		op := backstore.Op{Kind: kind, Off: 2 * page, Data: data}
		now := false
		On(c.Loop, func() { now = c.Lane.TryNow(&op) })
		switch {
		case !now && kind == backstore.Write:
			c.Write(t, 2*page, data)
		case now && op.Err != nil:
			t.Fatal(op.Err)
		case now && kind == backstore.Read && !bytes.Equal(data, s.kept(want)):
			t.Fatal("an unaligned read returned other data than was written")
		}
		s.expect(t, c, 2*page, s.kept(want))
	}
}

func testFUA(t *testing.T, s Subject) {
	_, c := s.open(t)
	data := Pattern(4*page, 3)
	c.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Off: page, Data: data})
	s.expect(t, c, page, s.kept(data))
	c.Must(t, backstore.Op{Kind: backstore.WriteZeroes, FUA: true, Off: page, Len: page})
	s.expect(t, c, page, make([]byte, page))
}

func testFlush(t *testing.T, s Subject) {
	_, c := s.open(t)
	data := Pattern(page, 4)
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	c.Write(t, 0, data)
	c.Must(t, backstore.Op{Kind: backstore.Flush, Off: 0, Len: Size})
	s.expect(t, c, 0, s.kept(data))
}

// ranges are cut at sectors and pages, inside one and over several of them.
var ranges = []struct{ off, n int64 }{
	{0, sector}, {page, page}, {page + sector, sector}, {sector, 2 * page},
	{3*page - sector, 4*page + 2*sector}, {Size - 3*sector, 3 * sector}, {Size - 5*page, 5 * page},
}

func testDiscard(t *testing.T, s Subject) {
	store, c := s.open(t)
	if !store.Info().Discard {
		err := c.Do(backstore.Op{Kind: backstore.Discard, Len: page})
		if !errors.Is(err, backstore.ErrUnsupported) {
			t.Fatalf("discard on a store that has none: %v", err)
		}
		return
	}
	s.checkZeroing(t, c, backstore.Discard, store.Info().DiscardZeroes)
}

func testWriteZeroes(t *testing.T, s Subject) {
	_, c := s.open(t)
	s.checkZeroing(t, c, backstore.WriteZeroes, true)
}

// checkZeroing expects the ranges to become zeroes, if zeroes is set, and all
// around them to stay.
func (s Subject) checkZeroing(t *testing.T, c *Client, kind backstore.Kind, zeroes bool) {
	t.Helper()
	for i, r := range ranges {
		want := slices.Clone(Pattern(Size, uint64(i)))
		c.Write(t, 0, want)
		c.Must(t, backstore.Op{Kind: kind, Off: r.off, Len: r.n})
		got := c.Read(t, 0, Size)
		clear(want[r.off : r.off+r.n])
		if !zeroes {
			clear(got[r.off : r.off+r.n])
		}
		if at := difference(got, s.kept(want)); at >= 0 {
			t.Fatalf("%v of %d bytes at %d: byte %d is %#x, expected %#x", kind, r.n, r.off, at, got[at], want[at])
		}
	}
}

// testZeroesOfTheWhole is longer than any single request that a store makes of
// it.
func testZeroesOfTheWhole(t *testing.T, s Subject) {
	store, c := s.open(t)
	for _, kind := range []backstore.Kind{backstore.WriteZeroes, backstore.Discard} {
		if info := store.Info(); kind == backstore.Discard && !(info.Discard && info.DiscardZeroes) {
			continue
		}
		c.Write(t, 0, Pattern(Size, 5))
		c.Must(t, backstore.Op{Kind: kind, Len: Size})
		s.expect(t, c, 0, make([]byte, Size))
	}
}

func (c *Client) mapAt(t Fataler, off, n int64) (mapped bool, length int64) {
	t.Helper()
	op := backstore.Op{Kind: backstore.Map, Off: off, Len: n}
	if err := c.Run(&op); err != nil {
		t.Fatalf("map of %d bytes at %d: %v", n, off, err)
	}
	if op.Len <= 0 || op.Len > n {
		t.Fatalf("map of %d bytes at %d: extent of %d bytes", n, off, op.Len)
	}
	return op.Mapped, op.Len
}

func testMapAfterDiscard(t *testing.T, s Subject) {
	store, c := s.open(t)
	c.Write(t, 0, Pattern(Size, 6))
	c.Must(t, backstore.Op{Kind: backstore.Flush})
	if mapped, n := c.mapAt(t, page, Size-page); mapped == s.Forgets || n != Size-page {
		t.Fatalf("map of written data: mapped %v for %d bytes, expected %d", mapped, n, Size-page)
	}
	if !store.Info().Discard || s.Whole || s.Forgets {
		return
	}
	hole := int64(max(store.Info().DiscardGran, page))
	c.Must(t, backstore.Op{Kind: backstore.Discard, Off: 2 * hole, Len: 3 * hole})
	for _, want := range []struct {
		off    int64
		mapped bool
		length int64
	}{
		{0, true, 2 * hole}, {2 * hole, false, 3 * hole}, {3 * hole, false, 2 * hole}, {5 * hole, true, Size - 5*hole},
	} {
		mapped, n := c.mapAt(t, want.off, Size-want.off)
		if mapped != want.mapped || n != want.length {
			t.Errorf("map at %d: mapped %v for %d bytes, expected %v for %d", want.off, mapped, n, want.mapped, want.length)
		}
	}
}

// testMapCoversAll walks the extents, as GET LBA STATUS does.
func testMapCoversAll(t *testing.T, s Subject) {
	_, c := s.open(t)
	c.Write(t, 64<<10, Pattern(page, 7))
	c.Write(t, Size-page, Pattern(page, 7))
	for off := int64(0); off < Size; {
		mapped, n := c.mapAt(t, off, Size-off)
		if !mapped {
			s.expect(t, c, off, make([]byte, n))
		}
		off += n
	}
}

func testOutOfRange(t *testing.T, s Subject) {
	_, c := s.open(t)
	for _, r := range []struct{ off, n int64 }{
		{Size, page}, {Size - page, 2 * page}, {-page, page}, {math.MaxInt64 - 4095, page}, {Size + page, 0},
	} {
		for _, kind := range []backstore.Kind{backstore.Read, backstore.Write} {
			err := c.Do(backstore.Op{Kind: kind, Off: r.off, Data: Buffer(int(r.n))})
			if !errors.Is(err, backstore.ErrOutOfRange) {
				t.Errorf("%v of %d bytes at %d: %v, expected ErrOutOfRange", kind, r.n, r.off, err)
			}
		}
		for _, kind := range []backstore.Kind{backstore.WriteZeroes, backstore.Map} {
			err := c.Do(backstore.Op{Kind: kind, Off: r.off, Len: r.n})
			if !errors.Is(err, backstore.ErrOutOfRange) {
				t.Errorf("%v of %d bytes at %d: %v, expected ErrOutOfRange", kind, r.n, r.off, err)
			}
		}
	}
	err := c.Do(backstore.Op{Kind: backstore.WriteZeroes, Off: page, Len: -page})
	if !errors.Is(err, backstore.ErrOutOfRange) {
		t.Errorf("write zeroes of a negative length: %v, expected ErrOutOfRange", err)
	}
	s.expect(t, c, 0, make([]byte, Size))
}

func testEmpty(t *testing.T, s Subject) {
	store, c := s.open(t)
	for kind := backstore.Read; kind <= backstore.Map; kind++ {
		if kind == backstore.Discard && !store.Info().Discard {
			continue
		}
		c.Must(t, backstore.Op{Kind: kind})
		c.Must(t, backstore.Op{Kind: kind, Off: Size})
	}
}

// testManyInFlight has more ops running than a ring has entries.
func testManyInFlight(t *testing.T, s Subject) {
	_, c := s.open(t)
	want := Pattern(Size, 8)
	s.transfer(t, c, backstore.Write, want, 0)
	got := Buffer(Size)
	s.transfer(t, c, backstore.Read, got, 0)
	if i := difference(got, s.kept(want)); i >= 0 {
		t.Fatalf("byte %d differs", i)
	}
}

// transfer moves data in pages that are all in flight together.
func (s Subject) transfer(t *testing.T, c *Client, kind backstore.Kind, data []byte, off int64) {
	t.Helper()
	ops := make([]backstore.Op, len(data)/page)
	var running []<-chan struct{}
	for i := range ops {
		at := i * page
		ops[i] = backstore.Op{Kind: kind, Off: off + int64(at), Data: data[at : at+page : at+page]}
		running = append(running, c.Go(&ops[i]))
	}
	for i, done := range running {
		<-done
		if ops[i].Err != nil {
			t.Errorf("%v at %d: %v", kind, ops[i].Off, ops[i].Err)
		}
	}
}

// testTwoLanes writes through two event threads and reads through the other.
func testTwoLanes(t *testing.T, s Subject) {
	store, a := s.open(t)
	b := NewClient(t, store, NewLoop(t, s.Ring))
	want := Pattern(Size, 10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.transfer(t, a, backstore.Write, want[:Size/2], 0)
	}()
	s.transfer(t, b, backstore.Write, want[Size/2:], Size/2)
	<-done
	s.expect(t, b, 0, s.kept(want[:Size/2]))
	s.expect(t, a, Size/2, s.kept(want[Size/2:]))
}

// testOverlappingLanes lets two event threads change and release the same pages.
// Anything may be left of them, but each byte comes from somewhere.
func testOverlappingLanes(t *testing.T, s Subject) {
	store, a := s.open(t)
	b := NewClient(t, store, NewLoop(t, s.Ring))
	const n = 16 * page
	ones, twos := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			a.Write(t, 0, ones)
			a.Must(t, backstore.Op{Kind: backstore.WriteZeroes, Off: page, Len: 3 * page})
		}
	}()
	for range 20 {
		b.Write(t, sector, twos)
		got := b.Read(t, 0, n)
		known := bytes.Count(got, []byte{0}) + bytes.Count(got, []byte{1}) + bytes.Count(got, []byte{2})
		if known != n {
			t.Fatalf("%d bytes are what nobody wrote", n-known)
		}
	}
	<-done
}

func testClose(t *testing.T, s Subject) {
	store := s.Open(t)
	loop := NewLoop(t, s.Ring)
	for range 3 {
		lane, err := store.Lane(loop)
		if err != nil {
			t.Fatal(err)
		}
		c := Client{loop, lane}
		c.Write(t, 0, Pattern(page, 11))
		On(loop, lane.Close)
	}
	On(loop, func() {}) // nothing is left behind that would run on the loop
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
