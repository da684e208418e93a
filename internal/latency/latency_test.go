package latency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestBuckets: every duration is in the bucket whose edges it is between, and no bucket
// is wider than an eighth of its least duration.
func TestBuckets(t *testing.T) {
	for i := range buckets - 1 {
		low, high := edge(i), edge(i+1)
		if bucketOf(low) != i || bucketOf(high-1) != i || bucketOf(high) != i+1 {
			t.Errorf("bucket %d, from %d to %d ns: found %d, %d, %d", i, low, high, bucketOf(low), bucketOf(high-1), bucketOf(high))
		}
		if i > 0 && (high-low)*perOctave > low {
			t.Errorf("bucket %d is %d ns wide from %d ns on", i, high-low, low)
		}
	}
	if bucketOf(-1) != 0 || bucketOf(math.MaxInt64) != buckets-1 {
		t.Error("durations out of range have no bucket")
	}
}

// Add counts a command that takes ns and ends now.
func (s *Slot) Add(op Operation, ns, now int64) {
	var b Batch
	b.Add(s, op, now-ns)
	b.Count(now)
}

// read is what a recorder counts.
func read(r *Recorder) (c Counts) {
	new(reading).since(r, &c)
	return c
}

// TestQuantiles: those of any durations are at most an eighth from the exact ones, and
// never above the longest.
func TestQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		var r Recorder
		var all []int64
		for range 1 + random.IntN(2000) {
			ns := int64(math.Exp(random.Float64()*float64(round%18)) * 1000)
			all = append(all, ns)
			r.addAll([]ended{{since: -ns}}, 0)
		}
		slices.Sort(all)
		c := read(&r)
		if c.Count() != uint64(len(all)) || c.Max != all[len(all)-1] {
			t.Fatalf("found %d of %d, longest %d, expected %d", c.Count(), len(all), c.Max, all[len(all)-1])
		}
		for _, share := range []float64{0, .5, .9, .99, .999, 1} {
			exact := float64(all[max(0, int(math.Ceil(share*float64(len(all))))-1)])
			found := c.Quantile(share)
			if found > float64(c.Max) || found > exact*(1+1./perOctave) || share > 0 && found < exact*(1-1./perOctave)-1<<firstBits {
				t.Errorf("round %d, quantile %v of %d: found %v, exact %v, longest %d", round, share, len(all), found, exact, c.Max)
			}
		}
	}
}

// TestBelow: the buckets of metrics are sums of whole ones.
func TestBelow(t *testing.T) {
	var r Recorder
	for bits := firstBits; bits <= lastBits; bits++ {
		r.addAll([]ended{{since: 1 - 1<<bits}, {since: -1 << bits}}, 0)
	}
	c := read(&r)
	for bits := firstBits; bits <= lastBits; bits++ {
		if found, want := c.Below(bits), uint64(2*(bits-firstBits)+1); found != want {
			t.Errorf("below 1<<%d ns: found %d, expected %d", bits, found, want)
		}
	}
}

// TestReplace: who comes late gets a slot when another has not used its for some time,
// the one with an unproven name never that of a proven one. Nothing that was counted is
// lost, and busy ones keep theirs.
func TestReplace(t *testing.T) {
	table, start := NewTable(2), time.Now()
	book := NewBook(8, start)
	tables := []*Table{table}
	key := func(name string) Key { return Key{Volume: "v", Initiator: name} }
	open := func(name string, proven bool, seconds int64) *Slot {
		now := seconds * 1e9
		s := table.Open(key(name), proven, now)
		s.Add(Read, 5000, now)
		return s
	}
	a, b := open("a", true, 0), open("b", false, 0)
	if c := open("c", true, 9); c.Initiator != "" || !a.Stands() || !b.Stands() {
		t.Errorf("c has slot %q, expected the others' one while a and b are busy", c.Initiator)
	}
	open("a", true, 15)
	if c := open("c", false, 20); c.Initiator != "c" || b.Stands() || !a.Stands() {
		t.Errorf("c has slot %q, expected that of b", c.Initiator)
	}
	if d := open("d", false, 29); d.Initiator != "" {
		t.Errorf("d, unproven, has slot %q", d.Initiator)
	}
	if d := open("d", false, 31); d.Initiator != "d" || !a.Stands() {
		t.Errorf("d has slot %q, expected that of c, not of a, whose name is proven", d.Initiator)
	}
	book.Turn(tables, start.Add(10*time.Second))
	r := book.Report(tables)
	if n := r.Volumes[0].Total[Read].Count(); n != 7 || r.Replaced != 2 || r.Interval != 10*time.Second {
		t.Errorf("found %d commands of 7, %d replaced of 2, interval %v", n, r.Replaced, r.Interval)
	}
	var names []string
	for _, u := range r.Uses {
		names = append(names, fmt.Sprint(u.Initiator, u.Last[Read].Count()))
	}
	if !slices.Equal(names, []string{"2", "a2", "b1", "c1", "d1"}) {
		t.Errorf("uses: %v", names)
	}
	table.prune()
	if len(table.retired) != 0 {
		t.Errorf("%d slots are kept that the book has read", len(table.retired))
	}
}

// TestBook: sums of volumes and initiators are over all threads and never go back;
// intervals have what was counted in them, initiators are bounded.
func TestBook(t *testing.T) {
	now := time.Now()
	book := NewBook(2, now)
	tables := []*Table{NewTable(8), NewTable(8)}
	add := func(table int, volume, initiator string, n int) {
		s := tables[table].Open(Key{Volume: volume, Initiator: initiator}, true, 0)
		for range n {
			s.Add(Write, 1_000_000, 0)
		}
	}
	add(0, "v", "a", 3)
	add(1, "v", "a", 4)
	add(1, "w", "b", 1)
	r := book.Report(tables)
	if len(r.Uses) != 0 || len(r.Volumes) != 2 || r.Volumes[0].Total[Write].Count() != 7 || r.Initiators[0].Total[Write] != (Totals{7, 7_000_000}) {
		t.Errorf("before the first interval has ended: %+v", r)
	}
	now = now.Add(time.Second)
	book.Turn(tables, now)
	add(0, "v", "a", 1)
	book.Turn(tables, now.Add(time.Second))
	r = book.Report(tables)
	if len(r.Uses) != 1 || r.Uses[0].Last[Write].Count() != 1 || r.Volumes[0].Last[Write].Count() != 1 || r.Volumes[0].Total[Write].Count() != 8 ||
		r.Initiators[0].Last[Write].Quantile(.99) > 1_000_000 {
		t.Errorf("after two intervals: %+v", r.Uses)
	}
	add(0, "v", "c", 1)
	r = book.Report(tables)
	if len(r.Initiators) != 2 || r.Initiators[0].Initiator != "a" || r.Initiators[1].Initiator != "c" || r.Replaced != 1 {
		t.Errorf("initiators: %+v, expected c in place of b, which was less active", r.Initiators)
	}
	tables[0].Forget("v")
	tables[1].Forget("v")
	book.Forget(func(volume string) bool { return volume != "v" })
	if r = book.Report(tables); len(r.Volumes) != 1 || r.Volumes[0].Name != "w" {
		t.Errorf("volumes after v was removed: %+v", r.Volumes)
	}
}

// TestConcurrent: readers find every command once while a thread counts.
func TestConcurrent(t *testing.T) {
	table, book := NewTable(4), NewBook(4, time.Now())
	tables := []*Table{table}
	const commands = 100_000
	var counting sync.WaitGroup
	counting.Go(func() {
		for i := range commands {
			table.Open(Key{Volume: "v", Initiator: "a"}, true, int64(i)).Add(Read, int64(i), int64(i))
		}
	})
	var before uint64
	for before < commands {
		r := book.Report(tables)
		book.Turn(tables, time.Now())
		if len(r.Volumes) == 0 {
			continue
		}
		c := &r.Volumes[0].Total[Read]
		if n := c.Count(); n < before || c.Quantile(1) > float64(c.Max) {
			t.Fatalf("found %d after %d, 100 %% below %v ns, longest %d", n, before, c.Quantile(1), c.Max)
		}
		before = c.Count()
	}
	counting.Wait()
}

// BenchmarkCommand is what a command costs its event thread, alone in a pass and as one of
// 32: the loop has looked at the clock.
func BenchmarkCommand(b *testing.B) {
	s := NewTable(1).Open(Key{Volume: "v", Initiator: "a"}, true, 0)
	for _, together := range []int{1, 32} {
		b.Run(fmt.Sprint(together), func(b *testing.B) {
			var batch Batch
			b.ReportAllocs()
			now := int64(time.Since(epoch))
			for i := range b.N {
				full := batch.Add(s, Read, longAgo-int64(i&0xffff))
				if full || together == 1 {
					batch.Count(now)
				}
			}
		})
	}
}

var epoch, longAgo = time.Now(), int64(-50_000)

// BenchmarkReport is what an answer costs with as many initiators as are kept.
func BenchmarkReport(b *testing.B) {
	table, book := NewTable(1024), NewBook(1024, time.Now())
	for i := range 1024 {
		s := table.Open(Key{Volume: fmt.Sprint("v", i%256), Initiator: fmt.Sprint("i", i)}, true, 0)
		for op := range Operations {
			s.Add(op, 1_000_000, 0)
		}
	}
	tables := []*Table{table}
	book.Turn(tables, time.Now())
	for b.Loop() {
		book.Report(tables)
	}
}
