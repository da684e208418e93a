package tier

import (
	"bytes"
	"sync/atomic"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

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
