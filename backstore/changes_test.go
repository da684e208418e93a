package backstore_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
)

// TestChanges: what alters a store while it is tracked is noted, by lanes that were open
// before and by later ones; nothing else is.
func TestChanges(t *testing.T) {
	const unit = 64 << 10
	ram := must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 512))
	slot := newSlot(t, ram)
	loops := []*evloop.Loop{backstoretest.NewLoop(t, true), backstoretest.NewLoop(t, false)}
	before := backstoretest.NewClient(t, slot, loops[0])
	do := func(c *backstoretest.Client, kind backstore.Kind, off, n int64) {
		t.Helper()
		op := backstore.Op{Kind: kind, Off: off, Len: n}
		if kind == backstore.Write || kind == backstore.Read {
			op.Data = backstoretest.Buffer(int(n))
		}
		if err := c.Do(op); err != nil {
			t.Fatal(err)
		}
	}
	do(before, backstore.Write, 0, 4096)
	changes := backstore.NewChanges(backstoretest.Size, unit)
	if err := slot.Track(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	after := backstoretest.NewClient(t, slot, loops[1])
	do(before, backstore.Read, 5*unit, 4096)
	do(before, backstore.Write, unit-4096, 8192)
	do(after, backstore.WriteZeroes, 3*unit, 4096)
	do(after, backstore.Discard, 7*unit, unit)
	do(after, backstore.Flush, 0, 0)
	if found, want := changes.Take(), []int64{0, 1, 3, 7}; !slices.Equal(found, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
	do(after, backstore.Write, backstoretest.Size-4096, 4096)
	if found, want := changes.Take(), []int64{backstoretest.Size/unit - 1}; !slices.Equal(found, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
	second := backstore.NewChanges(backstoretest.Size, unit)
	if err := slot.Track(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	do(before, backstore.Write, unit, 4096)
	if a, b := changes.Take(), second.Take(); !slices.Equal(a, []int64{1}) || !slices.Equal(b, a) {
		t.Errorf("found %v and %v, expected 1", a, b)
	}
	if err := slot.Untrack(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	do(before, backstore.Write, 0, 4096)
	if a, b := changes.Take(), second.Take(); len(a) > 0 || !slices.Equal(b, []int64{0}) {
		t.Errorf("found %v and %v, expected nothing and 0", a, b)
	}
	other := must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 512))
	if err := slot.Exchange(t.Context(), func(s backstore.Store) (backstore.Store, error) { return other, s.Close() }); err != nil {
		t.Fatal(err)
	}
	if found := second.Take(); len(found) != backstoretest.Size/unit {
		t.Errorf("found %v, expected all parts, for the store is another one", found)
	}
}

// TestChangesOfRanges: of any range the parts are noted that it touches, and no others.
func TestChangesOfRanges(t *testing.T) {
	const unit, size = 10, 64*3*10 + 5
	rapid.Check(t, func(t *rapid.T) {
		c, want := backstore.NewChanges(size, unit), map[int64]bool{}
		for range rapid.IntRange(1, 4).Draw(t, "ranges") {
			off := rapid.Int64Range(0, size).Draw(t, "from")
			n := rapid.Int64Range(0, size).Draw(t, "bytes")
			c.Note(&backstore.Op{Kind: backstore.Discard, Off: off, Len: n})
			for at := off; at < min(off+n, size); at++ {
				want[at/unit] = true
			}
		}
		if found := c.Take(); !slices.Equal(found, slices.Sorted(maps.Keys(want))) {
			t.Fatalf("found %v, expected %v", found, slices.Sorted(maps.Keys(want)))
		}
	})
}
