package cache

import (
	"errors"
	"fmt"
	"testing"

	lru "github.com/hashicorp/golang-lru/v2"
	"pgregory.net/rapid"
)

func partition(t testing.TB, slots int) *Partition {
	t.Helper()
	p, err := NewPartition(Config{Slots: slots, BlockSize: 16 << 10, LUs: 40}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// access reads one sub-block and reports whether it was there.
func access(p *Partition, k Key) bool {
	r := p.Read(k, 1, nil)
	switch r.Outcome {
	case Fill:
		p.EndFill(r.Slot, r.Mask, 0, nil)
	case Hit:
		p.Unpin(r.Slot)
	}
	return r.Outcome == Hit
}

func dirtyWrite(p *Partition, k Key, mask uint64) {
	g := p.BeginWrite(k, mask, mask, true, nil)
	p.EndWrite(&g, Dirty)
}

func count(chain *Waiter) (n int) {
	for ; chain != nil; chain = chain.Next() {
		n++
	}
	return n
}

// One fill for all who ask; the others get its outcome.
func TestSingleFlight(t *testing.T) {
	for _, fault := range []error{nil, errors.New("medium error")} {
		p := partition(t, 4)
		k := Key{1, 5}
		first := p.Read(k, 0b0111, nil)
		if first.Outcome != Fill || first.Mask != 0b0111 {
			t.Fatalf("first: %+v, expected a fill of 0x7", first)
		}
		var w [3]Waiter
		for i, want := range []uint64{0b0001, 0b0110, 0b0111} {
			if r := p.Read(k, want, &w[i]); r.Outcome != Wait {
				t.Fatalf("reader %d: %+v, expected it to wait", i, r)
			}
		}
		rest := p.Read(k, 0b1111, nil)
		if rest.Outcome != Fill || rest.Mask != 0b1000 {
			t.Fatalf("who wants more: %+v, expected a fill of 0x8", rest)
		}
		_, chain := p.EndFill(first.Slot, first.Mask, 0, fault)
		if n := count(chain); n != 3 || chain != &w[0] {
			t.Fatalf("%d waiters handed back, expected 3 in order of arrival", n)
		}
		for i := range w {
			if !errors.Is(w[i].Err, fault) {
				t.Errorf("waiter %d: error %v, expected %v", i, w[i].Err, fault)
			}
		}
		p.EndFill(rest.Slot, rest.Mask, 0, nil)
		if got := p.Read(k, 0b1000, nil); got.Outcome != Hit {
			t.Errorf("after its fill: %+v, expected a hit", got)
		} else {
			p.Unpin(got.Slot)
		}
	}
}

// A pinned range is not overwritten: the writer waits.
func TestPinnedRangeIsNotChanged(t *testing.T) {
	p := partition(t, 4)
	k := Key{1, 5}
	r := p.Read(k, 0b1111, nil)
	p.EndFill(r.Slot, r.Mask, 0, nil)
	r = p.Read(k, 0b0011, nil)

	var w, behind Waiter
	if g := p.BeginWrite(k, 0b0110, 0b0110, false, &w); g.Outcome != Wait {
		t.Fatalf("write under a pin: %+v, expected it to wait", g)
	}
	if got := p.Read(k, 0b0100, &behind); got.Outcome != Wait {
		t.Fatalf("reader behind a waiting writer: %+v, expected it to wait", got)
	}
	if other := p.Read(k, 0b1000, nil); other.Outcome != Hit {
		t.Fatalf("reader beside a waiting writer: %+v, expected a hit", other)
	}
	p.Unpin(r.Slot)
	if n := count(p.Unpin(r.Slot)); n != 2 {
		t.Fatalf("%d waiters handed back with the last pin, expected 2", n)
	}
}

// A fill that read the store before a write that goes past the cache must not
// come to stay.
func TestNoFillBesideBypassingWrite(t *testing.T) {
	p := partition(t, 1)
	if err := p.SetLU(1, LUConfig{Admission: never{}}); err != nil {
		t.Fatal(err)
	}
	k := Key{1, 5}
	g := p.BeginWrite(k, 1, 1, false, nil)
	if g.Outcome != Bypass {
		t.Fatalf("a write that may not enter: %+v", g)
	}
	if r := p.Prefetch(k, 1); r.Outcome != Bypass {
		t.Fatalf("a fill beside it: %+v, expected it to bypass", r)
	}
	if o := p.BeginWrite(k, 1, 1, true, nil); o.Outcome != Bypass {
		t.Fatalf("a write beside it: %+v, expected it to bypass", o)
	} else {
		p.EndWrite(&o, Clean)
	}
	p.EndWrite(&g, Clean)
	if r := p.Prefetch(k, 1); r.Outcome != Fill {
		t.Fatalf("a fill afterwards: %+v", r)
	} else {
		p.EndFill(r.Slot, r.Mask, 0, nil)
	}
}

type never struct{}

func (never) Hit(Key)        {}
func (never) Miss(Key) bool  { return false }
func (never) Evicted(Key)    {}
func (never) Due() bool      { return false }
func (never) Tick([]Key) int { return 0 }

// With neither pins nor dirty blocks the order is golang-lru's, exactly.
func TestLRUAgainstGolangLRU(t *testing.T) {
	for _, policy := range []string{"lru", "golang-lru", "2q"} {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				slots := rapid.IntRange(4, 20).Draw(rt, "slots")
				p := partition(t, slots)
				if err := p.SetLU(1, LUConfig{Replacement: policy}); err != nil {
					rt.Fatal(err)
				}
				oracle := oracleFor(policy, slots)
				for i, n := range rapid.SliceOfN(rapid.Uint64Range(0, 30), 1, 300).Draw(rt, "trace") {
					_, want := oracle.Get(n)
					if !want {
						oracle.Add(n)
					}
					if got := access(p, Key{1, n}); got != want {
						rt.Fatalf("access %d, to block %d: hit %v, expected %v", i, n, got, want)
					}
				}
			})
		})
	}
}

type oracle interface {
	Get(uint64) (struct{}, bool)
	Add(uint64)
}

type lruOracle struct{ *lru.Cache[uint64, struct{}] }

func (o lruOracle) Add(n uint64) { o.Cache.Add(n, struct{}{}) }

type twoQueueOracle struct {
	*lru.TwoQueueCache[uint64, struct{}]
}

func (o twoQueueOracle) Add(n uint64) { o.TwoQueueCache.Add(n, struct{}{}) }

func oracleFor(policy string, slots int) oracle {
	if policy == "2q" {
		q, err := lru.New2Q[uint64, struct{}](slots)
		if err != nil {
			panic(err)
		}
		return twoQueueOracle{q}
	}
	l, err := lru.New[uint64, struct{}](slots)
	if err != nil {
		panic(err)
	}
	return lruOracle{l}
}

// A scan of one LU leaves another its minimum, and itself stays within its
// maximum.
func TestShares(t *testing.T) {
	p := partition(t, 100)
	for lu, c := range map[uint32]LUConfig{1: {Min: 30}, 2: {Max: 20}, 3: {}} {
		if err := p.SetLU(lu, c); err != nil {
			t.Fatal(err)
		}
	}
	scan := func(lu uint32, blocks uint64) {
		for n := range blocks {
			access(p, Key{lu, n})
		}
	}
	expect := func(when string, want ...int) {
		t.Helper()
		for i, n := range want {
			if got, _ := p.Usage(uint32(i + 1)); got != n {
				t.Errorf("%s: LU %d has %d blocks, expected %d", when, i+1, got, n)
			}
		}
	}
	scan(1, 60)
	scan(2, 500)
	expect("room is left", 60, 20, 0)
	scan(3, 5000)
	expect("after a scan of LU 3", 30, 0, 70)
	scan(2, 500)
	expect("after a scan of LU 2", 30, 20, 50)
	scan(1, 5000)
	expect("after a scan of LU 1", 100, 0, 0)
	if access(p, Key{1, 4999}) == false {
		t.Error("the block that was used last is gone")
	}
	if err := p.SetLU(4, LUConfig{Min: 71}); err == nil {
		t.Error("minima of 101 blocks were accepted for 100")
	}
	if err := p.SetLU(4, LUConfig{Min: 3, Max: 2}); err == nil {
		t.Error("a minimum above the maximum was accepted")
	}
	if err := p.SetLU(40, LUConfig{}); err == nil {
		t.Error("LU 40 of 40 was accepted")
	}
	if err := p.SetLU(4, LUConfig{Replacement: "clock"}); err == nil {
		t.Error("policy clock was accepted")
	}
}

// A change of policy keeps blocks and their order.
func TestSetLUKeepsBlocks(t *testing.T) {
	p := partition(t, 3)
	for n := range uint64(3) {
		access(p, Key{1, n})
	}
	for _, policy := range []string{"golang-lru", "lru"} {
		if err := p.SetLU(1, LUConfig{Replacement: policy}); err != nil {
			t.Fatal(err)
		}
	}
	access(p, Key{1, 9})
	if access(p, Key{1, 1}) == false || access(p, Key{1, 2}) == false || access(p, Key{1, 0}) {
		t.Error("not the oldest block was evicted")
	}
}

// More LUs than are compared at once: whoever loses blocks, nobody loses those
// below its minimum and everything goes on.
func TestManyUnits(t *testing.T) {
	p := partition(t, 80)
	for lu := range uint32(39) {
		if err := p.SetLU(lu, LUConfig{Min: 1}); err != nil {
			t.Fatal(err)
		}
		access(p, Key{lu, 0})
		access(p, Key{lu, 1})
	}
	for n := range uint64(1000) {
		access(p, Key{39, n})
	}
	for lu := range uint32(39) {
		if got, _ := p.Usage(lu); got != 1 {
			t.Errorf("LU %d has %d blocks, expected 1", lu, got)
		}
	}
}

// What is pinned, claimed or dirty is never evicted; with nothing else left,
// requests go past the cache.
func TestNothingToEvict(t *testing.T) {
	p := partition(t, 3)
	dirtyWrite(p, Key{1, 0}, 1)
	access(p, Key{1, 1})
	pinned := p.Read(Key{1, 1}, 1, nil)
	filling := p.Read(Key{1, 2}, 1, nil)
	if r := p.Read(Key{1, 3}, 1, nil); r.Outcome != Bypass {
		t.Fatalf("found %+v, expected a bypass", r)
	}
	g := p.BeginWrite(Key{1, 3}, 1, 1, true, nil)
	if g.Outcome != Bypass {
		t.Fatalf("found %+v, expected a bypass", g)
	}
	p.EndWrite(&g, Clean)
	p.Unpin(pinned.Slot)
	if r := p.Read(Key{1, 3}, 1, nil); r.Outcome != Fill || r.Slot != pinned.Slot {
		t.Fatalf("found %+v, expected a fill in slot %d", r, pinned.Slot)
	} else {
		p.EndFill(r.Slot, r.Mask, 0, nil)
	}
	p.EndFill(filling.Slot, filling.Mask, 0, nil)
}

func extents(run Run, out []Extent) (s string) {
	for _, e := range out[:run.Extents] {
		s += fmt.Sprintf("%d/%d:%d+%d ", e.Key.LU, e.Key.Block, e.Off>>10, e.Len>>10)
	}
	return s
}

// The flusher goes by address and merges neighbours.
func TestTakeDirtyMerges(t *testing.T) {
	p := partition(t, 16)
	for _, w := range []struct {
		k    Key
		mask uint64
	}{
		{Key{2, 7}, 0b1111}, {Key{1, 9}, 0b0011}, {Key{1, 8}, 0b1101}, {Key{1, 7}, 0b1000}, {Key{1, 3}, 0b1111},
		{Key{1, 4}, 0b1111}, {Key{1, 5}, 0b1111}, {Key{1, 6}, 0b0110},
	} {
		dirtyWrite(p, w.k, w.mask)
	}
	if s := p.Stats(); s.DirtyBytes != 24*4096 {
		t.Errorf("%d bytes are dirty, expected %d", s.DirtyBytes, 24*4096)
	}
	want := []string{
		"1/3:0+16 1/4:0+16 ",
		"1/5:0+16 ",
		"1/6:4+8 ",
		"1/7:12+4 1/8:0+4 ",
		"1/8:8+8 1/9:0+8 ",
		"2/7:0+16 ",
	}
	var taken [][]Extent
	from, to := Key{}, Key{LU: 9}
	for i := 0; ; i++ {
		out := make([]Extent, 2)
		run := p.TakeDirty(from, to, out, nil)
		if run.Outcome == Done {
			break
		}
		if got := extents(run, out); i >= len(want) || got != want[i] {
			t.Fatalf("run %d: %s, expected %v", i, got, want)
		}
		from = run.Next
		taken = append(taken, out[:run.Extents])
	}
	if len(taken) != len(want) {
		t.Fatalf("%d runs, expected %d", len(taken), len(want))
	}
	var w, sync Waiter
	if g := p.BeginWrite(Key{1, 3}, 1, 1, false, &w); g.Outcome != Wait {
		t.Fatalf("write to what is being flushed: %+v, expected it to wait", g)
	}
	if run := p.TakeDirty(Key{1, 3}, Key{1, 4}, make([]Extent, 2), &sync); run.Outcome != Wait {
		t.Fatalf("SYNCHRONIZE CACHE of what is being flushed: %+v, expected it to wait", run)
	}
	if r := p.Read(Key{1, 4}, 15, nil); r.Outcome != Hit {
		t.Fatalf("read of what is being flushed: %+v, expected a hit", r)
	} else {
		p.Unpin(r.Slot)
	}
	if n := count(p.EndFlush(taken[0], false)); n != 2 {
		t.Errorf("%d waiters handed back, expected 2", n)
	}
	for _, e := range taken[1:] {
		p.EndFlush(e, true)
	}
	if s := p.Stats(); s.DirtyBytes != 32<<10 {
		t.Errorf("%d bytes are dirty after one run has failed, expected %d", s.DirtyBytes, 32<<10)
	}
	if _, dirty := p.Usage(1); dirty != 32<<10 {
		t.Errorf("%d bytes of LU 1 are dirty, expected %d", dirty, 32<<10)
	}
	if run := p.TakeDirty(Key{1, 5}, to, make([]Extent, 2), &sync); run.Outcome != Done {
		t.Errorf("behind the failed run: %+v, expected nothing", run)
	}
}

func TestPurge(t *testing.T) {
	p := partition(t, 8)
	for n := range uint64(4) {
		dirtyWrite(p, Key{1, n}, 3)
		access(p, Key{2, n})
	}
	pinned := p.Read(Key{1, 2}, 1, nil)
	if left := p.Purge(1, 2); left != 2 {
		t.Errorf("%d blocks left after two, expected 2", left)
	}
	if left := p.Purge(1, 100); left != 1 {
		t.Errorf("%d blocks left, expected the pinned one", left)
	}
	p.Unpin(pinned.Slot)
	if left := p.Purge(1, 100); left != 0 {
		t.Errorf("%d blocks left, expected none", left)
	}
	if s := p.Stats(); s.DirtyBytes != 0 || s.Used != 4 {
		t.Errorf("%+v, expected the 4 blocks of LU 2", s)
	}
}

// Dropped ranges are read anew; a failed drop loses no dirty data.
func TestDroppedRangesAreReadAnew(t *testing.T) {
	p := partition(t, 4)
	k := Key{1, 1}
	access(p, k)
	dirtyWrite(p, k, 0b0110)
	g := p.BeginDrop(k, 0b0011, nil)
	var w Waiter
	if r := p.Read(k, 1, &w); r.Outcome != Wait {
		t.Fatalf("read of what is being dropped: %+v, expected it to wait", r)
	}
	if n := count(p.EndDrop(&g, false)); n != 1 {
		t.Fatalf("%d waiters handed back, expected 1", n)
	}
	if r := p.Read(k, 0b0111, nil); r.Outcome != Fill || r.Mask != 0b0001 {
		t.Fatalf("after a failed drop: %+v, expected a fill of 0x1", r)
	} else {
		p.EndFill(r.Slot, r.Mask, 0, nil)
	}
	g = p.BeginDrop(k, 0b0111, nil)
	p.EndDrop(&g, true)
	if s := p.Stats(); s.Free != 4 || s.DirtyBytes != 0 {
		t.Errorf("%+v, expected an empty partition", s)
	}
}

// The index, against a map, under load and removal.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.Uint32Range(1, 40).Draw(rt, "slots")
		x := newIndex(make([]uint64, bucketsFor(slots)))
		blocks := make([]block, slots)
		there := map[Key]uint32{}
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			slot := rapid.Uint32Range(0, slots-1).Draw(rt, "slot")
			if b := &blocks[slot]; b.state == stateResident {
				x.remove(b.key().hash()&3, slot)
				delete(there, b.key())
				*b = block{}
			} else if k := (Key{1, rapid.Uint64Range(0, 50).Draw(rt, "block")}); there[k] == 0 {
				*b = block{lu: k.LU, number: k.Block, state: stateResident}
				x.insert(k.hash()&3, slot) // few hash values: long probes
				there[k] = slot + 1
			}
			for n := range uint64(51) {
				k := Key{1, n}
				want := there[k] - 1
				if got := x.find(blocks, k, k.hash()&3); got != want {
					rt.Fatalf("block %d: slot %d, expected %d", n, got, want)
				}
			}
		}
	})
}
