package tier

import (
	"bytes"
	"sync/atomic"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
)

// shareable is a volume that somebody else may write to as well, as soon as it is lapsed.
type shareable struct {
	*backstoretest.Client
	lane   *lane
	below  *backstoretest.Client // the other one
	lapsed *atomic.Bool
}

func newShareable(t *testing.T) shareable {
	t.Helper()
	lapsed := &atomic.Bool{}
	s := large.with(Through, "lru")
	s.volume.Lapsed = lapsed.Load
	store := newMem(t, false)
	w, _ := s.wrap(t, store)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	c := lendingClient(t, w)
	return shareable{c, c.Lane.(*lane), lendingClient(t, store), lapsed}
}

// TestLapsed: while it is not known whether somebody else has written, reads find what the
// store has; what was written meanwhile is in the cache when it is known again.
func TestLapsed(t *testing.T) {
	var lapsed atomic.Bool
	s := large.with(Through, "lru")
	s.volume.Lapsed = lapsed.Load
	store := newMem(t, false)
	w, _ := s.wrap(t, store)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	c := lendingClient(t, w)
	l := c.Lane.(*lane)
	other := backstoretest.NewClient(t, store, l.loop)
	read := func(want []byte, hit bool) {
		t.Helper()
		op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(len(want))}
		if err := c.Run(&op); err != nil || !bytes.Equal(op.Data, want) || op.Hit != hit {
			t.Errorf("%v; found other data, or that the cache had them: %v, expected %v", err, op.Hit, hit)
		}
	}
	old, theirs, own := backstoretest.Pattern(4*page, 1), backstoretest.Pattern(4*page, 2), backstoretest.Pattern(4*page, 3)
	c.Write(t, 0, old)
	read(old, true)
	lapsed.Store(true)
	other.Write(t, 0, theirs)
	read(theirs, false)
	if ref := l.lend(0, page); ref != nil {
		t.Error("a block was lent")
		ref.Release()
	}
	c.Write(t, 0, own)
	read(own, false)
	lapsed.Store(false)
	read(own, true)
}

// A read that waits for a block, which somebody else is filling, looks again when it goes on.
func TestLapsedWhileWaiting(t *testing.T) {
	var lapsed atomic.Bool
	s := large.with(Through, "lru")
	s.volume.Lapsed = lapsed.Load
	f := newFaulty(t, s)
	loop := backstoretest.NewLoop(t, false)
	other := backstoretest.NewClient(t, f.volume, loop)
	fresh := backstoretest.Pattern(page, 2)

	f.faults.SetRules(errstore.Rule{Kinds: reads, Hold: true, Times: 1})
	first := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
	filled := f.Go(&first)
	eventually.Holds(t, "the fill is under way", func() bool { return f.faults.Held() == 1 })
	second := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
	done := other.Go(&second)
	eventually.Holds(t, "the other one waits", func() bool { return f.cache.Stats().Waits == 1 })
	stopped, goOn := make(chan struct{}), make(chan struct{})
	go backstoretest.On(loop, func() { close(stopped); <-goOn })
	<-stopped
	f.faults.Release(-1)
	<-filled
	lapsed.Store(true)
	write := backstore.Op{Kind: backstore.Write, Data: fresh}
	backstoretest.On(f.Lane.(*lane).loop, func() {
		l, err := f.medium.Lane(f.Lane.(*lane).loop)
		if err != nil || !l.TryNow(&write) && !l.Submit(&write) {
			t.Errorf("somebody else's write has not ended: %v", err)
		}
	})
	close(goOn)
	<-done
	if second.Err != nil || !bytes.Equal(second.Data, fresh) {
		t.Errorf("error %v, or what was cached", second.Err)
	}
}

// An event thread that stood still, as in a process that was stopped, serves nothing from
// the cache to commands that have come meanwhile.
func TestLapsedWhileStopped(t *testing.T) {
	v := newShareable(t)
	old, fresh := backstoretest.Pattern(page, 1), backstoretest.Pattern(page, 2)
	v.Write(t, 0, old)
	v.Read(t, 0, len(old))
	stopped, goOn := make(chan struct{}), make(chan struct{})
	go backstoretest.On(v.lane.loop, func() { close(stopped); <-goOn })
	<-stopped
	read := backstore.Op{Kind: backstore.Read, Data: make([]byte, page)}
	done := v.Go(&read)
	v.below.Write(t, 0, fresh)
	v.lapsed.Store(true)
	close(goOn)
	<-done
	if read.Err != nil || !bytes.Equal(read.Data, fresh) {
		t.Errorf("error %v, or what was cached", read.Err)
	}
}

// Neither looking nor passing the cache by allocates.
func TestLapsedAllocatesNothing(t *testing.T) {
	v := newShareable(t)
	v.Write(t, 0, backstoretest.Pattern(page, 1))
	v.Read(t, 0, page)
	for _, lapsed := range []bool{false, true} {
		v.lapsed.Store(lapsed)
		backstoretest.On(v.lane.loop, func() {
			memory := v.lane.loop.Pool().Get(page)
			defer memory.Release()
			op := backstore.Op{Kind: backstore.Read, Data: memory.Bytes()}
			n := testing.AllocsPerRun(100, func() {
				if !v.lane.TryNow(&op) && !v.lane.Submit(&op) {
					t.Error("a read of memory has not ended at once")
				}
			})
			if n != 0 {
				t.Errorf("lapsed %v: %v allocations", lapsed, n)
			}
		})
	}
}
