package scheduler

import (
	"reflect"
	"slices"
	"testing"
)

// TestQuantiles: they lie in the bucket of the duration that they stand for.
func TestQuantiles(t *testing.T) {
	var h Histogram
	if q := h.Quantile(0.5); q != 0 {
		t.Errorf("found %v of nothing", q)
	}
	for i := range int64(1000) {
		h.Add(i * 1000)
	}
	for share, exact := range map[float64]float64{0: 0, 0.01: 10e3, 0.5: 500e3, 0.9: 900e3, 0.99: 990e3, 1: 999e3} {
		if q := h.Quantile(share); q < exact/2 || q > 2*exact+1 {
			t.Errorf("quantile %v: found %v, expected about %v", share, q, exact)
		}
	}
	if n := h.Below(10); n != 2 || h.Count() != 1000 || h.Below(99) != 1000 {
		t.Errorf("found %d below 1024 ns, expected 0 and 1000 ns; %d of %d", n, h.Below(99), h.Count())
	}
}

// TestQuantilesStayBelowTheMaximum: of durations in one bucket, in its middle, and
// beyond the last bucket, also where they were counted apart.
func TestQuantilesStayBelowTheMaximum(t *testing.T) {
	for _, all := range [][]int64{{5}, {1025}, {1 << 20, 1<<20 + 1}, {0, 0, 3}, {100, 100000}, {1 << 45}, {1<<39 + 7, 1 << 50}, {0}} {
		var h Histogram
		for _, ns := range all {
			var other Histogram
			other.Add(ns)
			h.Merge(&other)
		}
		most := slices.Max(all)
		if h.Max() != most {
			t.Errorf("%d: found a maximum of %d", all, h.Max())
		}
		before := 0.0
		for _, share := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
			q := h.Quantile(share)
			if q > float64(most) || q < before {
				t.Errorf("%d: found %v for %v, expected no less than %v and no more than %d", all, q, share, before, most)
			}
			before = q
		}
		if before != float64(most) {
			t.Errorf("%d: found %v for all of them, expected the maximum", all, before)
		}
	}
}

// TestMergeOfExplanations: all counts are added, and times by rule.
func TestMergeOfExplanations(t *testing.T) {
	var c Counters
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		v.Field(i).SetInt(int64(i + 1))
	}
	a := Explanation{Counters: c, Waiting: 1, Effects: []Effect{{Rule: "x", HeldIOPS: 1}, {Rule: "y", HeldBytes: 2}}}
	b := Explanation{Counters: c, Waiting: 2, Effects: []Effect{{Rule: "y", HeldBytes: 5}, {Rule: "z", HeldIOPS: 9}}}
	a.Waits.Add(1)
	b.Waits.Add(1)
	b.Services.Add(3)
	a.Merge(&b)
	sum := reflect.ValueOf(a.Counters)
	for i := range sum.NumField() {
		if sum.Field(i).Int() != 2*int64(i+1) {
			t.Errorf("%s was not added", sum.Type().Field(i).Name)
		}
	}
	if a.Waiting != 3 || a.Waits.Count() != 2 || a.Services.Count() != 1 || len(a.Effects) != 2 || a.Effects[0].HeldIOPS != 1 || a.Effects[1].HeldBytes != 7 {
		t.Errorf("found %+v", a)
	}
}

// TestUnusedReservation: the periods that ask for less than is reserved count as long as
// they follow each other.
func TestUnusedReservation(t *testing.T) {
	var a attainment
	for i, c := range []struct{ offered, reservation, unused int64 }{{4, 5, 1}, {0, 5, 2}, {5, 5, 0}, {4, 5, 1}, {0, 0, 0}} {
		a.add(clientTotals{offered: c.offered, served: c.offered}, c.reservation)
		if a.fulfilment.Unused != c.unused {
			t.Errorf("period %d: found %d, expected %d", i, a.fulfilment.Unused, c.unused)
		}
	}
}

// TestPeriodsWithoutReservationCountAsNeither: periods without a reservation count as neither.
func TestPeriodsWithoutReservationCountAsNeither(t *testing.T) {
	var a attainment
	a.add(clientTotals{offered: 10, served: 10}, 0)
	a.add(clientTotals{offered: 10, served: 5}, 5)
	a.add(clientTotals{offered: 10, served: 4}, 5)
	a.add(clientTotals{offered: 3, served: 3}, 5)
	if a.fulfilment != (Fulfilment{Met: 2, Missed: 1, Unused: 1}) {
		t.Errorf("found %+v", a.fulfilment)
	}
}
