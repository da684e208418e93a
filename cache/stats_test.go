package cache

import "testing"

// TestLUStats: reads count for their LU; what nobody has asked for does not.
func TestLUStats(t *testing.T) {
	p := partition(t, 8)
	access(p, Key{1, 5}) // misses
	access(p, Key{1, 5}) // hits
	if _, ok := p.TryRead(Key{1, 5}, 1); !ok {
		t.Fatal("block 5 is not there")
	}
	p.Unpin(p.index.find(p.blocks, Key{1, 5}, Key{1, 5}.hash()))
	access(p, Key{2, 5}) // misses
	if r := p.Prefetch(Key{2, 6}, 3); r.Outcome == Fill {
		p.EndFill(r.Slot, r.Mask, 0, nil)
	}
	dirtyWrite(p, Key{3, 1}, 0b11)
	stats := p.AppendLUStats(nil)
	for lu, want := range map[int]LUStats{
		0: {},
		1: {Blocks: 1, Hits: 2, Misses: 1},
		2: {Blocks: 2, Misses: 1},
		3: {Blocks: 1, DirtyBytes: 2 * 4096},
	} {
		if stats[lu] != want {
			t.Errorf("LU %d: found %+v, expected %+v", lu, stats[lu], want)
		}
	}
	if all := p.Stats(); all.Hits != 2 || all.Misses != 2 {
		t.Errorf("found %d hits and %d misses of all LUs, expected 2 and 2", all.Hits, all.Misses)
	}
}

// TestFussyStats: a FussyCache tells its parameters, its mode and what it counts.
func TestFussyStats(t *testing.T) {
	params := FussyParams{FreqThreshold: 1, AccessThreshold: 100, Metadata: 8, HRCount: 2}
	c := newFussyCache(t, 4, params)
	for _, block := range []uint64{1, 2, 3, 3} {
		c.get(block)
	}
	want := FussyStats{Params: params, Counted: 3, Popular: 1}
	if found := c.p.AppendLUStats(nil)[0].Fussy; found != want {
		t.Errorf("found %+v, expected %+v", found, want)
	}
	c.f.change()
	want.LRU, want.Switches = true, 1
	if found := c.p.AppendLUStats(nil)[0].Fussy; found != want {
		t.Errorf("after a change found %+v, expected %+v", found, want)
	}
}
