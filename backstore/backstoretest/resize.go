package backstoretest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"lunar/backstore"
)

// testResize also finds data of before behind an end that went and came back.
func testResize(t *testing.T, s Subject) {
	store, c := s.open(t)
	want := Pattern(Size, 12)
	c.Write(t, 0, want)
	if s.Fixed {
		if err := backstore.Resize(store, Size/2); err == nil {
			t.Error("the size could be changed: expected an error")
		}
		if n := store.Info().Size; n != Size {
			t.Errorf("size %d after the error, expected %d", n, Size)
		}
		s.expect(t, c, 0, s.kept(want))
		return
	}
	unit := s.unit()
	for _, size := range []int64{Size / 2, Size, 5*page + unit, 9*page + unit, 7*page + unit, Size + 3*page + unit, page, Size} {
		if err := backstore.Resize(store, size); err != nil {
			t.Fatal(err)
		}
		want = resized(want, size)
		checkSize(t, s, store, c, want)
		if size > 5*page { // dirty data at the end, for the next round
			tail := Pattern(int(unit), uint64(size))
			c.Write(t, size-unit, tail)
			copy(want[size-unit:], tail)
			c.Read(t, size-unit, int(unit))
		}
	}
	for _, size := range []int64{0, -Size, Size + unit - 1} {
		if err := backstore.Resize(store, size); err == nil {
			t.Errorf("resize to %d bytes: expected an error", size)
		}
	}
	checkSize(t, s, store, c, want)
}

// unit is a length that all sizes are a multiple of.
func (s Subject) unit() int64 { return int64(max(s.BlockSize, sector)) }

// resized is what is left of data, with zeroes behind.
func resized(data []byte, size int64) []byte {
	return append(bytes.Clone(data[:min(size, int64(len(data)))]), make([]byte, max(0, size-int64(len(data))))...)
}

// checkSize expects the store to hold want and to end there.
func checkSize(t *testing.T, s Subject, store backstore.Store, c *Client, want []byte) {
	t.Helper()
	size := int64(len(want))
	if n := store.Info().Size; n != size {
		t.Fatalf("size %d after a resize to %d", n, size)
	}
	s.expect(t, c, 0, s.kept(want))
	for _, op := range []backstore.Op{
		{Kind: backstore.Read, Off: size, Data: Buffer(page)}, {Kind: backstore.Write, Off: size, Data: Buffer(page)},
		{Kind: backstore.WriteZeroes, Off: size - page, Len: 2 * page},
	} {
		if err := c.Do(op); !errors.Is(err, backstore.ErrOutOfRange) {
			t.Fatalf("%v of %d bytes at %d, where the end is %d: %v", op.Kind, op.Length(), op.Off, size, err)
		}
	}
}

// testResizeInUse cuts the store while two event threads write everywhere, and
// lets it grow while they write up to its end. Then there are zeroes behind where
// the end was.
func testResizeInUse(t *testing.T, s Subject) {
	if s.Fixed {
		return
	}
	store, c := s.open(t)
	clients := []*Client{c, NewClient(t, store, NewLoop(t, s.Ring))}
	ones := bytes.Repeat([]byte{1}, Size)
	for round := range 6 {
		cut := page*int64(7*round+9) + int64(round%2)*s.unit()
		c.Write(t, 0, ones)
		for _, phase := range []struct{ size, limit int64 }{{cut, Size}, {Size, cut}} {
			if err := s.whileWriting(t, clients, phase.limit, func() error { return backstore.Resize(store, phase.size) }); err != nil {
				t.Fatal(err)
			}
		}
		left := append(bytes.Repeat([]byte{1}, int(cut)), make([]byte, Size-cut)...)
		s.expect(t, c, 0, s.kept(left))
		c.Must(t, backstore.Op{Kind: backstore.Flush})
		s.expect(t, c, 0, s.kept(left))
	}
}

// whileWriting calls f while the clients write ones before limit.
func (s Subject) whileWriting(t *testing.T, clients []*Client, limit int64, f func() error) error {
	stop := make(chan struct{})
	var group, busy sync.WaitGroup
	busy.Add(len(clients))
	for i, c := range clients {
		w := writer{c, limit, s.unit(), rand.New(rand.NewPCG(uint64(limit), uint64(i))), sync.OnceFunc(busy.Done)}
		group.Go(func() {
			if err := w.run(stop); err != nil {
				t.Error(err)
			}
		})
	}
	busy.Wait()
	defer group.Wait()
	defer close(stop)
	return f()
}

// writer writes ones and reads. Behind the end it may be told so.
type writer struct {
	*Client
	limit, unit int64
	random      *rand.Rand
	started     func() // it has done something
}

func (w *writer) run(stop <-chan struct{}) error {
	ones := Buffer(32 * page)
	copy(ones, bytes.Repeat([]byte{1}, len(ones)))
	defer w.started()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := w.step(ones); err != nil {
			return err
		}
		w.started()
	}
}

// step often ends at the limit, where there may be a part of a page.
func (w *writer) step(ones []byte) error {
	n := w.unit * (1 + w.random.Int64N(min(int64(len(ones)), w.limit)/w.unit))
	off := w.limit - n
	if w.random.IntN(2) == 0 {
		off = w.unit * w.random.Int64N((w.limit-n)/w.unit+1)
	}
	op := backstore.Op{Kind: backstore.Write, Off: off, Data: ones[:n]}
	if w.random.IntN(3) == 0 {
		op.Kind, op.Data = backstore.Read, Buffer(int(n))
	}
	if err := w.Do(op); err != nil && !errors.Is(err, backstore.ErrOutOfRange) {
		return fmt.Errorf("%v of %d bytes at %d: %w", op.Kind, n, off, err)
	}
	return nil
}
