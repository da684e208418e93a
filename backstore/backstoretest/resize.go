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

// testResizeInUse cuts the store while two event threads write everywhere. When
// it grows again there are zeroes behind where the end was.
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
		stop := make(chan struct{})
		var group, busy sync.WaitGroup
		busy.Add(len(clients))
		for i, c := range clients {
			random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			group.Go(func() {
				if err := c.writeUntil(stop, busy.Done, random, s.unit()); err != nil {
					t.Error(err)
				}
			})
		}
		busy.Wait()
		err := backstore.Resize(store, cut)
		close(stop)
		group.Wait()
		if err == nil {
			err = backstore.Resize(store, Size)
		}
		if err != nil {
			t.Fatal(err)
		}
		left := append(bytes.Repeat([]byte{1}, int(cut)), make([]byte, Size-cut)...)
		s.expect(t, c, 0, s.kept(left))
	}
	c.Must(t, backstore.Op{Kind: backstore.Flush})
}

// writeUntil writes ones and reads. Behind the end it may be told so. started is
// called when it is at it.
func (c *Client) writeUntil(stop <-chan struct{}, started func(), random *rand.Rand, unit int64) error {
	start := sync.OnceFunc(started)
	defer start()
	ones := Buffer(32 * page)
	copy(ones, bytes.Repeat([]byte{1}, len(ones)))
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		n := unit * (1 + random.Int64N(int64(len(ones))/unit))
		off := unit * random.Int64N((Size-n)/unit+1)
		op := backstore.Op{Kind: backstore.Write, Off: off, Data: ones[:n]}
		if random.IntN(3) == 0 {
			op.Kind, op.Data = backstore.Read, Buffer(int(n))
		}
		if err := c.Do(op); err != nil && !errors.Is(err, backstore.ErrOutOfRange) {
			return fmt.Errorf("%v of %d bytes at %d: %w", op.Kind, n, off, err)
		}
		start()
	}
}
