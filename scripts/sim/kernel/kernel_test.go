package kernel

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type recorder struct {
	kernel *Kernel
	got    []int32
	times  []int64
}

func (r *recorder) Fire(now int64, what int32) {
	r.got = append(r.got, what)
	r.times = append(r.times, now)
}

// TestClockRule: at one instant the classes run in their order, whatever the
// order of planning, and equal classes in the order of planning.
func TestClockRule(t *testing.T) {
	k := &Kernel{}
	r := &recorder{kernel: k}
	for i, class := range []Class{Arrival, BatchTimer, TokenTick, Conversion, Redistribution, PeriodStart, Completion, Arrival, Completion} {
		k.At(5, class, r, int32(i))
	}
	k.At(4, Arrival, r, 100)
	k.Run(5)
	if want := []int32{100, 6, 8, 5, 4, 3, 2, 1, 0, 7}; !slices.Equal(r.got, want) {
		t.Errorf("order %v, expected %v", r.got, want)
	}
	if k.Now() != 5 || k.Events() != 10 {
		t.Errorf("time %d after %d events, expected 5 after 10", k.Now(), k.Events())
	}
}

// TestRunStopsAtItsTime: later events stay for the next Run.
func TestRunStopsAtItsTime(t *testing.T) {
	k := &Kernel{}
	r := &recorder{kernel: k}
	k.At(10, Arrival, r, 1)
	k.At(11, Arrival, r, 2)
	k.Run(10)
	if len(r.got) != 1 || k.Now() != 10 {
		t.Fatalf("ran %v by %d, expected the event of 10 only", r.got, k.Now())
	}
	k.Run(20)
	if len(r.got) != 2 || k.Now() != 20 {
		t.Errorf("ran %v by %d, expected both by 20", r.got, k.Now())
	}
}

// TestPastPanics: time does not go back.
func TestPastPanics(t *testing.T) {
	k := &Kernel{}
	k.Run(7)
	defer func() {
		if recover() == nil {
			t.Error("an event in the past was accepted")
		}
	}()
	k.At(6, Arrival, &recorder{}, 0)
}

// TestHeapOrder: random plans run in order of time and class.
func TestHeapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &Kernel{}
		r := &recorder{kernel: k}
		times := rapid.SliceOf(rapid.Int64Range(0, 50)).Draw(t, "times")
		for i, at := range times {
			k.At(at, Class(i%7), r, int32(i%7))
		}
		k.Run(50)
		if len(r.got) != len(times) {
			t.Fatalf("%d events ran of %d", len(r.got), len(times))
		}
		for i := 1; i < len(r.got); i++ {
			if r.times[i] < r.times[i-1] || r.times[i] == r.times[i-1] && r.got[i] < r.got[i-1] {
				t.Fatalf("event %d of class %d at %d after class %d at %d", i, r.got[i], r.times[i], r.got[i-1], r.times[i-1])
			}
		}
	})
}

// TestZipf: the pair weights and reservations of Haechi's set 2 (algorithms C 7).
func TestZipf(t *testing.T) {
	pairs := ZipfWeights(5, 0.6)
	ten := make([]float64, 0, 10)
	for _, w := range pairs {
		ten = append(ten, w, w)
	}
	got := Shares(1_413_000, ten)
	for i, want := range []float64{236.05, 155.73, 122.10, 102.75, 89.87} {
		if kilo := float64(got[2*i]) / 1000; kilo < want-0.25 || kilo > want+0.25 {
			t.Errorf("pair %d reserves %.2fK, expected %.2fK", i+1, kilo, want)
		}
	}
}

// TestShares: whole shares add up to the total.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(0.01, 10), 1, 20).Draw(t, "weights")
		total := rapid.Int64Range(0, 1_000_000).Draw(t, "total")
		sum := int64(0)
		for _, s := range Shares(total, weights) {
			if s < 0 {
				t.Fatalf("negative share %d", s)
			}
			sum += s
		}
		if sum != total {
			t.Fatalf("shares add up to %d, expected %d", sum, total)
		}
	})
}

// TestDraw: ranks come by weight, and the same seed draws the same.
func TestDraw(t *testing.T) {
	d := NewDraw([]float64{3, 1})
	a, b := NewRand(1, 2), NewRand(1, 2)
	counts := [2]int{}
	for range 4000 {
		i := d.Next(a)
		if i != d.Next(b) {
			t.Fatal("the same seed drew differently")
		}
		counts[i]++
	}
	if counts[0] < 2800 || counts[0] > 3200 {
		t.Errorf("drew %v, expected about 3000 and 1000", counts)
	}
}
