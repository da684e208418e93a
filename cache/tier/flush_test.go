package tier

import (
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// A flush of a range writes what is dirty there; the rest may stay.
func TestFlushOfARange(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age = time.Hour
	f := newFaulty(t, s)
	block := int64(s.block)
	for i := range int64(8) {
		f.Write(t, i*block, backstoretest.Pattern(page, uint64(i)))
	}
	f.Must(t, backstore.Op{Kind: backstore.Flush, Off: 2 * block, Len: 3*block - page})
	if dirty := f.cache.Stats().DirtyBytes; dirty != 5*page {
		t.Errorf("%d bytes are dirty after 3 of 8 blocks were flushed, expected %d", dirty, 5*page)
	}
	if n := f.medium.Unstable(); n != 0 {
		t.Errorf("%d sectors of what was written are not stable", n)
	}
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	if dirty := f.cache.Stats().DirtyBytes; dirty != 0 {
		t.Errorf("%d bytes are dirty after everything was flushed", dirty)
	}
}
