package tier

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache"
	"lunar/internal/eventually"
	"lunar/internal/evloop"
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

// dirtyIn returns how many pages of a volume are dirty in the blocks [from, to).
func (f *faulty) dirtyIn(from, to uint64) (n int) {
	for block := from; block < to; block++ {
		k := cache.Key{LU: f.volume.(*volume).config.LU, Block: block}
		_, mask := f.cache.blocks.Parts[f.cache.blocks.Geometry.Partition(k)].NextDirty(k, cache.Key{LU: k.LU, Block: block + 1})
		n += bits.OnesCount64(mask)
	}
	return n
}

// marked is a volume that may have 64 dirty pages: more than 48 are looked at, more
// than 40 are written until there are 32. No two pages of write are neighbours.
func marked(t *testing.T) (f *faulty, write func(page int)) {
	s := large.with(Back, "lru")
	s.volume.Age, s.volume.DirtyLimit = time.Hour, 64*page
	f = newFaulty(t, s)
	return f, func(i int) { f.Write(t, int64(i)*2*page, backstoretest.Pattern(page, uint64(i))) }
}

// What is written again while it is dirty is no reason to write it to the store below.
func TestHotSetStays(t *testing.T) {
	f, write := marked(t)
	for i := range 39 {
		write(i)
	}
	for i := range 10 {
		write(i)
	}
	v := f.volume.(*volume)
	// The last write counts twice while it has not ended.
	eventually.Holds(t, "the flusher has looked", func() bool { return v.room.own.estimate.Load() <= 40*page })
	turned := make(chan struct{})
	v.flusher.loop.Post(evloop.Func(func() { close(turned) }))
	<-turned
	if s := f.cache.Stats(); s.DirtyBytes != 39*page || s.Flushed != 0 {
		t.Errorf("%d bytes are dirty and %d were written, expected %d and none", s.DirtyBytes, s.Flushed, 39*page)
	}
}

// A sweep that makes room goes on where the last one has had enough, and begins anew
// behind the end.
func TestSweepGoesOn(t *testing.T) {
	f, write := marked(t)
	block := f.cache.blocks.Geometry.BlockSize()
	last := uint64(backstoretest.Size / block)
	half := uint64(64 * page / block) // the first 32 pages are in the blocks before
	for i := range 49 {
		write(i)
	}
	left := func(before, behind int) {
		t.Helper()
		eventually.Holds(t, "a sweep has made room", func() bool { return f.cache.Stats().DirtyBytes == uint64(before+behind)*page })
		if b, e := f.dirtyIn(0, half), f.dirtyIn(half, last); b != before || e != behind {
			t.Fatalf("%d dirty pages are left before and %d behind the middle, expected %d and %d", b, e, before, behind)
		}
	}
	left(0, 17) // of two batches of 16 writes
	for i := range 32 {
		write(i)
	}
	left(32, 0)
	for i := 32; i < 49; i++ {
		write(i)
	}
	eventually.Holds(t, "a sweep has begun anew", func() bool { return f.dirtyIn(0, half) < 32 })
	f.Must(t, backstore.Op{Kind: backstore.Flush})
	f.same(t)
}

// What lies behind each other in memory is one write. What does not is one if it is small:
// what is long is not copied for that.
func TestNeighbours(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age = time.Hour
	lower := &recorder{Store: newMem(t, false)}
	volume, _ := s.wrap(t, lower)
	t.Cleanup(func() {
		if err := volume.Close(); err != nil {
			t.Error(err)
		}
	})
	client := backstoretest.NewClient(t, volume, backstoretest.NewLoop(t, false))
	block := int64(s.block)
	client.Write(t, 0, backstoretest.Pattern(2*mergeBelow, 1))
	client.Write(t, 3*block-page, backstoretest.Pattern(2*page, 2)) // in two blocks
	for _, small := range []int64{5 * block, 5*block - page} {      // in the order of memory
		client.Write(t, small, backstoretest.Pattern(page, 3))
	}
	for _, long := range []int64{7 * block, 6 * block} {
		client.Write(t, long, backstoretest.Pattern(mergeBelow, 4))
	}
	client.Must(t, backstore.Op{Kind: backstore.Flush})
	var got [][2]int64
	lower.mu.Lock()
	for _, op := range lower.writes {
		got = append(got, [2]int64{op.Off, op.Len})
	}
	lower.mu.Unlock()
	if want := [][2]int64{{0, 2 * mergeBelow}, {3*block - page, 2 * page}, {5*block - page, 2 * page}, {6 * block, mergeBelow}, {7 * block, mergeBelow}}; !slices.Equal(got, want) {
		t.Errorf("the store below got writes (offset, length) of %d, expected %d", got, want)
	}
}
