package plm

import (
	"testing"

	"pgregory.net/rapid"
)

const ms = 1_000_000

// window of the first vector of P.3: no margins, no guard.
var window = Config{Reads: 100, Writes: 50, Window: 100 * ms, ShortND: 10 * ms, LongND: 40 * ms}

// change is when a set entered a window.
type change struct {
	at int64
	dt bool
}

// follow makes 2.5 reads in a ms and returns the changes of windows.
func follow(s *Set, held int64, until int64) (changes []change) {
	for range held {
		s.Hold()
	}
	was := true
	for now := int64(0); now < until; now += ms / 10 {
		if now%(4*ms/10) == 0 && now > 0 && s.Deterministic() {
			s.Read()
		}
		s.Advance(now, false)
		if s.Deterministic() != was {
			was = !was
			changes = append(changes, change{now, was})
		}
		if !was {
			s.Flushed(held)
		}
	}
	return changes
}

// TestWindows: a deterministic window ends with its reads, and what follows lasts the
// longer the more writes are held.
func TestWindows(t *testing.T) {
	for held, end := range map[int64]int64{0: 50, 25: 65, 49: 40 + 10 + 29} {
		got := follow(NewSet(window, 0), held, 70*ms)
		if got[0] != (change{40 * ms, false}) {
			t.Errorf("%d held: %v, expected the deterministic window to end at 40 ms", held, got)
		}
		if end < 70 && got[1] != (change{end * ms, true}) {
			t.Errorf("%d held: %v, expected the next one at %d ms", held, got, end)
		}
	}
}

// TestEndsOfWindows: what ends a window, before its limit where there is a margin, and
// beside a partner at its limit only.
func TestEndsOfWindows(t *testing.T) {
	c := Config{Reads: 100, Writes: 50, Window: 100 * ms, ShortND: 10 * ms, LongND: 40 * ms, Full: 30}.Margins()
	if c.ReadMargin != 2 || c.WriteMargin != 1 || c.Guard != ms {
		t.Fatalf("margins %+v", c)
	}
	for name, tc := range map[string]struct {
		do              func(*Set)
		now             int64
		leaves, insists bool
	}{
		"nothing":         {func(*Set) {}, 0, false, false},
		"reads near":      {func(s *Set) { s.reads = 2 }, 0, true, false},
		"reads left":      {func(s *Set) { s.reads = 3 }, 0, false, false},
		"reads spent":     {func(s *Set) { s.reads = 0 }, 0, true, true},
		"writes near":     {func(s *Set) { s.writes = 1 }, 0, true, false},
		"writes spent":    {func(s *Set) { s.writes = 0 }, 0, true, true},
		"time near":       {func(*Set) {}, 99 * ms, true, false},
		"time over":       {func(*Set) {}, 100 * ms, true, true},
		"buffer not full": {func(s *Set) { s.held = 29 }, 0, false, false},
		"buffer full":     {func(s *Set) { s.held = 30 }, 0, true, true},
		"emergency":       {(*Set).Urge, 0, true, true},
	} {
		for _, partnerND := range []bool{false, true} {
			s := NewSet(c, 0)
			tc.do(s)
			s.Advance(tc.now, partnerND)
			want, forced := tc.leaves, int64(0)
			if partnerND {
				if want = tc.insists; want {
					forced = 1
				}
			}
			if s.Deterministic() == want || s.Forced() != forced {
				t.Errorf("%s, partner works %t: left %t forced %d, expected %t, %d", name, partnerND, !s.Deterministic(), s.Forced(), want, forced)
			}
		}
	}
}

// TestPairNeverWorksTogether: whatever is read, written and when, both sets work at once
// only when a device forces it, and with windows that end by time alone it never does.
func TestPairNeverWorksTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Window: 100 * ms, ShortND: 5 * ms, LongND: rapid.Int64Range(5, 40).Draw(t, "long") * ms}
		limited := rapid.Bool().Draw(t, "limited")
		if limited {
			c.Reads, c.Writes = 200, 100
		}
		c = c.Margins()
		p := NewPair(c, 0)
		now, forced := int64(0), int64(0)
		for range 500 {
			now += rapid.Int64Range(0, 1).Draw(t, "ns") + rapid.Int64Range(0, ms/2).Draw(t, "step")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				for i := range 2 {
					if s := p.Set(i); s.Deterministic() {
						s.Hold()
					}
				}
			case 1:
				if w := p.Work(now); w < 0 {
					t.Fatal("nobody works")
				}
			default:
				i, deterministic := p.Reader()
				if deterministic != p.Set(i).Deterministic() {
					t.Fatal("a read goes elsewhere than told")
				}
				p.Set(i).Read()
			}
			p.Advance(now)
			for i := range 2 {
				if !p.Set(i).Deterministic() {
					p.Set(i).Flushed(p.Set(i).Held())
				}
			}
			both := !p.Set(0).Deterministic() && !p.Set(1).Deterministic()
			now := p.Set(0).Forced() + p.Set(1).Forced()
			if both && now == 0 || now != forced && !limited {
				t.Fatalf("both work: %t, forced %d times", both, now)
			}
			forced = now
		}
	})
}

// TestWorkAlternates: what neither may hold has each set leave its window in turn.
func TestWorkAlternates(t *testing.T) {
	p := NewPair(Config{Window: 1000 * ms, ShortND: 10 * ms, LongND: 10 * ms}, 0)
	last := -1
	for now := int64(0); now < 500*ms; now += 11 * ms {
		p.Advance(now)
		w := p.Work(now)
		if w == last {
			t.Fatalf("at %d ms set %d works again", now/ms, w)
		}
		if r, deterministic := p.Reader(); r == w || !deterministic {
			t.Fatalf("reads go to set %d, which works", r)
		}
		last = w
	}
}

// TestHand: who is handed the work has it, and nobody else.
func TestHand(t *testing.T) {
	p := NewPair(Config{Window: 1000 * ms, ShortND: 10 * ms, LongND: 10 * ms}, 0)
	for i, to := range []int{1, 0, 0, 1} {
		p.Hand(to, int64(i)*ms)
		if r, deterministic := p.Reader(); p.Working() != to || r == to || !deterministic {
			t.Errorf("handed to %d: %d works, %d reads (%t)", to, p.Working(), r, deterministic)
		}
	}
	if n := p.Set(0).Forced() + p.Set(1).Forced(); n != 0 {
		t.Errorf("forced %d times", n)
	}
}

// TestAllocation has the vectors of P.3.
func TestAllocation(t *testing.T) {
	means := [classes]float64{420, 328, 298}
	for name, tc := range map[string]struct {
		plan  Plan
		asked [classes]float64
		want  Counts
	}{
		"strict":                {Plan{Reads: 1464, Means: means}, [classes]float64{700, 500, 400}, Counts{700, 466, 298}},
		"fixed":                 {Plan{Reads: 1464, Means: means, Rule: Fixed}, [classes]float64{700, 500, 400}, Counts{659, 447, 358}},
		"strict, one wants":     {Plan{Reads: 1464, Means: means}, [classes]float64{900, 300, 300}, Counts{838, 328, 298}},
		"fixed, one wants":      {Plan{Reads: 1464, Means: means, Rule: Fixed}, [classes]float64{900, 300, 300}, Counts{836, 328, 300}},
		"literal, enough":       {Plan{Reads: 1464, Means: means, Mode: Literal}, [classes]float64{420, 328, 298}, Counts{420, 328, 298}},
		"headroom":              {Plan{Reads: 1116, Means: means}, [classes]float64{420, 328, 298}, Counts{460, 348, 308}},
		"literal, as much":      {Plan{Reads: 1046, Means: means, Mode: Literal}, [classes]float64{420, 328, 298}, Counts{420, 328, 298}},
		"halves":                {Plan{Reads: 10, Means: [classes]float64{1, 1, 1}, Mode: Literal}, [classes]float64{2.5, 2.5, 2.5}, Counts{3, 2, 2}},
		"means beyond a window": {Plan{Reads: 523, Means: means}, means, Counts{210, 164, 149}},
	} {
		if got := tc.plan.Allocate(tc.asked); got != tc.want {
			t.Errorf("%s: %v, expected %v", name, got, tc.want)
		}
	}
}

// TestAllocationStaysWithin: never more than a window serves is given, and with headroom or
// too many wishes not less.
func TestAllocationStaysWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Plan{
			Mode: Mode(rapid.IntRange(0, 1).Draw(t, "mode")), Rule: Rule(rapid.IntRange(0, 1).Draw(t, "rule")),
		}
		var asked [classes]float64
		sum, wanted := 0.0, 0.0
		for i := range p.Means {
			p.Means[i] = rapid.Float64Range(0, 500).Draw(t, "mean")
			asked[i] = rapid.Float64Range(0, 1500).Draw(t, "asked")
			sum, wanted = sum+p.Means[i], wanted+asked[i]
		}
		p.Reads = max(1, int64(sum)+rapid.Int64Range(-500, 500).Draw(t, "more"))
		got := p.Allocate(asked)
		if got.Sum() > p.Reads || (p.Mode == Headroom || wanted > float64(p.Reads)) && got.Sum() != p.Reads {
			t.Fatalf("%+v of %v: %v, %d in all", p, asked, got, got.Sum())
		}
	})
}

// TestPrediction has the fourth vector of P.3.
func TestPrediction(t *testing.T) {
	p := NewPredictor([classes]float64{420, 420, 420})
	for i, n := range []int64{420, 900, 300} {
		p.Asked(Counts{n, n, n})
		if got, want := p.Expected()[Medium], []float64{420, 660, 480}[i]; got != want {
			t.Errorf("after %d: %g, expected %g", n, got, want)
		}
	}
	used, beyond := Use(659, 900)
	if used != 1 || int(beyond*1000+.5) != 268 {
		t.Errorf("used %g, beyond %g, expected 1 and .268", used, beyond)
	}
	if used, beyond := Use(0, 0); used != 0 || beyond != 0 {
		t.Errorf("of nothing: %g, %g", used, beyond)
	}
}

// TestLight has the vectors of P.4.
func TestLight(t *testing.T) {
	if got := Divide(BasisOf(30)); got != (Counts{14, 7, 3}) {
		t.Errorf("24 reads: %v", got)
	}
	w := Writes{PerWindow: BasisOf(70)}
	for round := range 2 {
		w.Begin()
		for i := range 60 {
			if slow := w.Slow(4096); slow != (i < 56) {
				t.Errorf("window %d: write %d to the slow device: %t", round, i+1, slow)
			}
		}
		if !w.Spent() {
			t.Error("writes are left")
		}
	}
	mixed := Writes{PerWindow: 2, Large: 64 << 10}
	for i, tc := range []struct {
		n    int64
		slow bool
	}{{4096, false}, {64 << 10, true}, {64<<10 - 512, false}, {128 << 10, true}, {128 << 10, false}} {
		if mixed.Slow(tc.n) != tc.slow {
			t.Errorf("mixed write %d of %d bytes: slow %t", i, tc.n, !tc.slow)
		}
	}
	r := Reads{PerWindow: 7}
	r.Begin()
	for i, tc := range []struct {
		class Class
		way   Way
	}{{Low, Now}, {Low, Deferred}, {Medium, Now}, {Medium, Now}, {Medium, Anyhow}, {High, Now}, {High, Now}, {High, Now}, {High, Now}, {High, Anyhow}} {
		if way := r.Take(tc.class); way != tc.way {
			t.Errorf("read %d of class %d: %d, expected %d", i, tc.class, way, tc.way)
		}
	}
	r.Begin()
	if r.Take(Low) != Now {
		t.Error("a new window has no reads")
	}
}
