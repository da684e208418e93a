package windows

import (
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
)

// flushed is a volume whose slow device, which takes all writes, holds some operations.
func flushed(t *testing.T, held backstore.Kind) (x *Excess, slow *errstore.Store, medium *memstore.Store) {
	t.Helper()
	medium = mem(t, crashSize)
	slow = errstore.Wrap(medium)
	c := excessOf(slow, mem(t, ExcessLeast))
	c.Large, c.Writes, c.Window = 4096, 1<<40, time.Hour
	x = openExcess(t, c)
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	k.Must(t, backstore.Op{Kind: backstore.Flush}) // of what the last process may have left
	slow.SetRules(errstore.Rule{Kinds: []backstore.Kind{held}, Hold: true, Times: 1})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x, slow, medium
}

// begin has another client do an operation.
func begin(t *testing.T, s backstore.Store, op backstore.Op) (ended chan error) {
	t.Helper()
	k := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
	ended = make(chan error, 1)
	go func() { ended <- k.Do(op) }()
	return ended
}

// TestFlushBesideAFlush: a flush does not end before the one that makes its writes stable.
func TestFlushBesideAFlush(t *testing.T) {
	x, slow, medium := flushed(t, backstore.Flush)
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	k.Write(t, 0, backstoretest.Pattern(4096, 1))
	first := begin(t, x, backstore.Op{Kind: backstore.Flush})
	eventually.Finds(t, "flushes that are held", 1, slow.Held)
	k2 := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	second := make(chan int, 1)
	go func() {
		if err := k2.Do(backstore.Op{Kind: backstore.Flush}); err != nil {
			t.Error(err)
		}
		second <- medium.Unstable()
	}()
	for i := 0; i < 100 && len(second) == 0; i++ { // it has begun by then
		k.Read(t, 0, 4096)
	}
	slow.Release(-1)
	if n := <-second; n > 0 {
		t.Errorf("a flush has ended with %d sectors that are not stable", n)
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// TestFlushBesideAWrite: a write that ends after a flush is one of the next flush.
func TestFlushBesideAWrite(t *testing.T) {
	x, slow, medium := flushed(t, backstore.Write)
	write := begin(t, x, backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(4096, 1)})
	eventually.Finds(t, "writes that are held", 1, slow.Held)
	k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
	k.Must(t, backstore.Op{Kind: backstore.Flush})
	slow.Release(-1)
	if err := <-write; err != nil {
		t.Fatal(err)
	}
	k.Must(t, backstore.Op{Kind: backstore.Flush})
	if n := medium.Unstable(); n > 0 {
		t.Errorf("a flush has left %d sectors of a write that had ended", n)
	}
}
