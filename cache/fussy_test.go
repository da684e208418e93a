package cache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fussyCache is a partition with the policy, driven block by block.
type fussyCache struct {
	p *Partition
	f *Fussy
}

func newFussyCache(t testing.TB, slots int, params FussyParams) *fussyCache {
	t.Helper()
	f, err := NewFussy(params)
	if err != nil {
		t.Fatal(err)
	}
	p := partition(t, slots)
	if err := p.SetLU(0, LUConfig{Admission: f}); err != nil {
		t.Fatal(err)
	}
	return &fussyCache{p, f}
}

// get reads a block and, when the policy is due, fetches what it wants.
func (c *fussyCache) get(block uint64) bool {
	hit := access(c.p, Key{Block: block})
	var out [3]Key
	for c.p.Due() {
		for _, k := range out[:c.p.Tick(out[:])] {
			if r := c.p.Prefetch(k, 1); r.Outcome == Fill {
				c.p.EndFill(r.Slot, r.Mask, 0, nil)
			}
		}
	}
	return hit
}

// dc lists the data cache, least recent first; dmc the metadata cache by name.
func (c *fussyCache) dc() (s string) {
	order := c.p.lus[0].order.(*lruList)
	for slot := order.tail; slot != NoSlot; slot = order.blocks[slot].prev {
		s += string(rune(order.blocks[slot].number))
	}
	return s
}

func (c *fussyCache) dmc() string {
	var s []string
	for _, k := range c.f.freq.Keys() {
		n, _ := c.f.freq.Peek(k)
		s = append(s, fmt.Sprintf("%c%d", rune(k.Block), n))
	}
	slices.Sort(s)
	return strings.Join(s, " ")
}

// Section C, the trace.
func TestFussyTrace(t *testing.T) {
	c := newFussyCache(t, 2, FussyParams{FreqThreshold: 2, AccessThreshold: 6, Metadata: 4, HRCount: 5})
	for _, step := range []struct{ blocks, hits, dc, dmc string }{
		{"ABACAB", "", "A", "B2 C1"},
		{"ABBDAB", "AA", "AB", "C1 D1"},
		{"BAEEEF", "BA", "AE", "B1 C1 D1 F1"},
		{"AAEGEC", "AAEE", "AE", "B1 C1 F1 G1"},
	} {
		hits := ""
		for _, b := range step.blocks {
			if c.get(uint64(b)) {
				hits += string(b)
			}
		}
		if hits != step.hits || c.dc() != step.dc || c.dmc() != step.dmc {
			t.Errorf("%s: hits %s, DC %s, DMC %s; expected %+v", step.blocks, hits, c.dc(), c.dmc(), step)
		}
	}
}

// drive makes an interval of ten accesses with the given number of hits.
func drive(f *Fussy, hits int, miss *uint64) {
	for i := range 10 {
		if i < hits {
			f.Hit(Key{Block: 1 << 40})
			continue
		}
		*miss++
		f.Miss(Key{Block: *miss})
	}
	var out [4]Key
	for f.Due() {
		f.Tick(out[:])
	}
}

// Section C, the switch.
func TestFussySwitch(t *testing.T) {
	f, err := NewFussy(FussyParams{FreqThreshold: 2, AccessThreshold: 10, Metadata: 8, HRCount: 2})
	if err != nil {
		t.Fatal(err)
	}
	var miss uint64
	for i, step := range []struct {
		hits, measure int
		lru           bool
		hrCount       int
	}{
		{5, 0, false, 2}, {4, 1, false, 2}, {3, 0, true, 4},
		{3, 1, true, 4}, {3, 2, true, 4}, {3, 3, true, 4}, {3, 0, false, 8},
	} {
		drive(f, step.hits, &miss)
		if f.hrMeasure != step.measure || f.lru != step.lru || f.hrCount != step.hrCount {
			t.Errorf("tick %d: hrMeasure %d, LRU %v, hrCount %d; expected %+v", i, f.hrMeasure, f.lru, f.hrCount, step)
		}
	}
}

// A rise resets the measure, and enough that is popular ends LRU mode early.
func TestFussySwitchesBackWhenPopular(t *testing.T) {
	f, err := NewFussy(FussyParams{FreqThreshold: 1, AccessThreshold: 10, Metadata: 6, HRCount: 2})
	if err != nil {
		t.Fatal(err)
	}
	var miss uint64
	for _, hits := range []int{5, 4, 5, 4} {
		drive(f, hits, &miss)
	}
	if f.lru || f.hrMeasure != 1 {
		t.Fatalf("LRU %v, hrMeasure %d: expected the rise to start anew", f.lru, f.hrMeasure)
	}
	drive(f, 3, &miss)
	if !f.LRU() {
		t.Fatal("no change to LRU")
	}
	for range 2 {
		for n := range uint64(5) {
			f.Miss(Key{Block: 1000 + n})
		}
	}
	if f.Tick(make([]Key, 4)); f.LRU() {
		t.Errorf("still LRU with %d popular blocks of %d", f.popular.Len(), f.params.Metadata)
	}
}

// The metadata cache forgets the least frequent first, of these the oldest, and
// what it forgets is not popular any more.
func TestFussyForgets(t *testing.T) {
	f, err := NewFussy(FussyParams{FreqThreshold: 1, AccessThreshold: 100, Metadata: 3, HRCount: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range "AABBCCDD" {
		f.Miss(Key{Block: uint64(b)})
	}
	c := &fussyCache{f: f}
	if got := c.dmc(); got != "B2 C2 D2" || f.popular.Len() != 3 {
		t.Errorf("DMC %s, %d popular; expected B2 C2 D2, 3", got, f.popular.Len())
	}
	f.Miss(Key{Block: 'E'})
	f.Miss(Key{Block: 'F'})
	if got := c.dmc(); got != "C2 D2 F1" {
		t.Errorf("DMC %s, expected C2 D2 F1", got)
	}
}

func TestFussyRefusesNonsense(t *testing.T) {
	good := FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: 100, HRCount: 5}
	for _, change := range []func(*FussyParams){
		func(p *FussyParams) { p.FreqThreshold = 0 }, func(p *FussyParams) { p.FreqThreshold = maxFreq },
		func(p *FussyParams) { p.AccessThreshold = 0 }, func(p *FussyParams) { p.Metadata = 0 }, func(p *FussyParams) { p.HRCount = 0 },
	} {
		params := good
		change(&params)
		if _, err := NewFussy(params); err == nil {
			t.Errorf("%+v was accepted", params)
		}
	}
}

// Warm-up: ten blocks that are read again and again among many that are read
// once are found sooner with lower thresholds.
func TestTuneFussy(t *testing.T) {
	warm := NewWarmUp(LatencyModel{Lookup: 1000, Device: 15000, Data: 5000, Metadata: 500})
	once := uint64(1 << 20)
	for i := 0; !warm.Full(); i++ {
		warm.Note(Key{Block: uint64(i % 10)})
		for range 3 {
			once++
			warm.Note(Key{Block: once})
		}
	}
	params, err := warm.Tune(50)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := warm.Tune(50); again != params {
		t.Errorf("%+v and then %+v from the same trace", params, again)
	}
	slow := params
	slow.FreqThreshold, slow.AccessThreshold = maxTuneFreq, 1000
	if a, b := warm.latency(params, 50), warm.latency(slow, 50); a >= b || params.AccessThreshold > 100 || params.Metadata != 50 {
		t.Errorf("%+v costs %d ns, %+v costs %d", params, a, slow, b)
	}
	t.Logf("%+v", params)
	if _, err := warm.Tune(0); err == nil {
		t.Error("an empty data cache was accepted")
	}
}

// A FussyCache that finds its own parameters is LRU until it has them.
func TestFussyWarmsUp(t *testing.T) {
	var records []*WarmUp
	f, err := NewWarmingFussy(FussyParams{FreqThreshold: 3, AccessThreshold: 500, Metadata: 25, HRCount: 5},
		LatencyModel{Lookup: 1000, Device: 15000, Data: 5000, Metadata: 500}, func(w *WarmUp) { records = append(records, w) })
	if err != nil {
		t.Fatal(err)
	}
	p := partition(t, 50)
	if err := p.SetLU(0, LUConfig{Admission: f}); err != nil {
		t.Fatal(err)
	}
	c, once := &fussyCache{p, f}, uint64(1<<20)
	use := func(n int) {
		for i := range n { // a block of ten, and three that never come again
			if c.get(uint64(i % 10)); i%2 == 0 {
				once += 6
			}
			for j := range uint64(3) {
				c.get(once - uint64(i%2)*3 + j)
			}
		}
	}
	use(warmUp/4 - 1)
	if got := p.Stats(); got.Bypassed != 0 || len(records) != 0 || !f.LRU() {
		t.Fatalf("while warming up %d blocks were kept out, %d records, LRU %v", got.Bypassed, len(records), f.LRU())
	}
	use(1)
	if len(records) != 1 || !records[0].Full() || !f.LRU() {
		t.Fatalf("%d records after %d accesses, LRU %v", len(records), warmUp, f.LRU())
	}
	params, err := records[0].Tune(50)
	if err == nil {
		err = p.Tune(0, params)
	}
	if err != nil {
		t.Fatal(err)
	}
	tuned := p.AppendLUStats(nil)[0].Fussy
	if tuned.LRU || tuned.Warming || tuned.Params != params {
		t.Errorf("after tuning %+v, expected parameters %+v", tuned, params)
	}
	before := p.Stats().Bypassed
	use(1000)
	if kept := p.Stats().Bypassed - before; kept < 2900 || p.AppendLUStats(nil)[0].Fussy.LRU {
		t.Errorf("%d of 3000 blocks that come once were kept out", kept)
	}
	if err := p.Tune(0, FussyParams{}); err == nil {
		t.Error("no parameters were accepted")
	}
}
