package qtcp

import (
	"fmt"
	"math"
	"testing"
)

// near fails unless got is want in all of the digits that want is given with.
func near(t *testing.T, what string, got, want float64, digits int) {
	t.Helper()
	if math.Abs(got-want) > 0.5*math.Pow10(-digits)+1e-9 {
		t.Errorf("%s is %.6f, expected %.*f", what, got, digits, want)
	}
}

// settled is a flow behind slow start whose α is as given after a round trip with that
// share of marks.
func settled(window, alpha float64) *Flow { return &Flow{window: window, alpha: alpha} }

func TestWindow(t *testing.T) {
	for _, c := range []struct{ alpha, quality, want float64 }{
		{0, 1, 101}, {0, 0.5, 101}, {0.4, 1.2, 80}, {0.4, 0.5, 40}, {1, 1, 50},
	} {
		f := settled(100, c.alpha)
		f.Update(c.alpha, c.quality)
		near(t, fmt.Sprintf("window with α %g and Q %g", c.alpha, c.quality), f.Window(), c.want, 6)
	}
}

// TestWeighedWindow: a window is cut for congestion in round trips that have some, and for what
// it has beyond its share until that is forgotten, and grows by its weight otherwise.
func TestWeighedWindow(t *testing.T) {
	for _, c := range []struct{ alpha, share, quality, weight, want float64 }{
		{0.4, 0.4, 1.2, 3, 80}, {0.4, 0.4, 0.5, 3, 40}, {1, 1, 1, 0.5, 50}, // as Update does
		{0, 0, 1, 1.5, 101.5}, {0, 0, 0.5, 0.5, 100.5},
		{0.4, 0, 1.2, 1.5, 101.5}, {0.4, 0, 0.5, 1.5, 50},
	} {
		f := settled(100, c.alpha)
		f.UpdateWeighed(c.share, c.quality, c.weight)
		near(t, fmt.Sprintf("window with α %g, %g marked, Q %g and weight %g", c.alpha, c.share, c.quality, c.weight), f.Window(), c.want, 6)
	}
	f := NewFlow(10)
	f.UpdateWeighed(0, 1, 0.5)
	near(t, "window in slow start", f.Window(), 20, 6)
	f.UpdateWeighed(0.5, 1, 0.5)
	near(t, "window after its end", f.Window(), 17.5, 6)
	if f.SlowStart() {
		t.Error("slow start goes on after marks")
	}
}

// TestWeighedWindowIsCutOnce: packets of a round trip behind a cut had left before it, so that
// neither their marks nor their rate cut again.
func TestWeighedWindowIsCutOnce(t *testing.T) {
	f := settled(100, 1)
	for round, c := range []struct{ share, quality, want float64 }{
		{1, 1, 50}, {1, 0.5, 50}, {1, 0.8, 20}, {0, 0.8, 20}, {0, 0.8, 16}, {0, 1, 17}, {0, 0.5, 8.5},
	} {
		f.UpdateWeighed(c.share, c.quality, 1)
		near(t, fmt.Sprintf("window after %d round trips", round+1), f.Window(), c.want, 6)
	}
}

func TestExcess(t *testing.T) {
	for _, c := range []struct {
		queued, allowed int64
		want            float64
	}{{0, 3, 0}, {3, 3, 0}, {4, 3, 0.25}, {30, 3, 0.9}, {-5, 0, 0}, {5, 0, 1}} {
		near(t, fmt.Sprintf("excess of %d beyond %d", c.queued, c.allowed), Excess(c.queued, c.allowed), c.want, 6)
	}
}

func TestWeight(t *testing.T) {
	d := NewDevice(100, DefaultRatios)
	near(t, "weight of the first flow", d.Weight(Low), 1, 6)
	for _, c := range []Class{High, Medium, Low} {
		d.Join(c)
	}
	near(t, "High", d.Weight(High), 1.5, 6)
	near(t, "Medium", d.Weight(Medium), 1, 6)
	near(t, "Low", d.Weight(Low), 0.5, 6)
	d.Join(Low)
	near(t, "High with two Low", d.Weight(High), 2, 6)
	near(t, "each of two Low", d.Weight(Low), 1./3, 6)
}

func TestWindowIsAtLeastOne(t *testing.T) {
	f := settled(1.5, 1)
	f.Update(1, 0.1)
	near(t, "window", f.Window(), 1, 6)
	f.Use(0)
	near(t, "window without use", f.Window(), 1, 6)
}

func TestSlowStart(t *testing.T) {
	f := NewFlow(10)
	for _, want := range []float64{20, 40, 80} {
		f.Update(0, 1)
		near(t, "window in slow start", f.Window(), want, 6)
	}
	f.Update(0.5, 1)
	if f.SlowStart() {
		t.Error("slow start goes on after marks")
	}
	near(t, "α", f.Alpha(), 0.25, 6)
	near(t, "window", f.Window(), 70, 6)
	for range 5 {
		f.Update(0, 1)
	}
	before := f.Window()
	f.Update(0, 1)
	near(t, "growth behind slow start", f.Window()-before, 1, 6)
}

// TestD2TCP: with lateness 1 it is DCTCP; who is late gives way less, who is early more.
func TestD2TCP(t *testing.T) {
	for _, c := range []struct{ lateness, want float64 }{{1, 80}, {2, 92}, {0.5, 100 - 100*math.Sqrt(0.4)/2}} {
		f := settled(100, 0.4)
		f.UpdateD2TCP(0.4, c.lateness)
		near(t, fmt.Sprintf("window with lateness %g", c.lateness), f.Window(), c.want, 6)
	}
}

func TestQuality(t *testing.T) {
	f := NewFlow(10)
	near(t, "quality without a measurement", f.Quality(50), 1, 6)
	near(t, "lateness without a measurement", f.Lateness(50), 1, 6)
	f.Measure(100)
	f.Measure(50)
	near(t, "m", f.Measured(), 75, 6)
	near(t, "quality", f.Quality(30), 0.4, 6)
	near(t, "lateness", f.Lateness(150), 0.5, 6)
}

func TestRound(t *testing.T) {
	f, same := settled(100, 0.4), settled(100, 0.4)
	f.Round(Round{Delivered: 10, Marked: 4, Rate: 60}, 30)
	near(t, "window", f.Window(), 40, 6)
	same.Round(Round{}, 30)
	if *same != *settled(100, 0.4) {
		t.Errorf("a round trip without data made %+v of the flow", *same)
	}
}

func TestTarget(t *testing.T) {
	d := NewDevice(100, DefaultRatios)
	near(t, "target of the first flow", d.Target(Low), 100, 6)
	for _, c := range []Class{High, Medium, Low, Low} {
		d.Join(c)
	}
	near(t, "High", d.Target(High), 50, 6)
	near(t, "Medium", d.Target(Medium), 33.33, 2)
	near(t, "each of two Low", d.Target(Low), 8.33, 2)
	d.Leave(High)
	near(t, "Medium without High", d.Target(Medium), 66.67, 2)
	if d.Flows(High) != 0 || d.Flows(Low) != 2 {
		t.Errorf("%d and %d flows, expected 0 and 2", d.Flows(High), d.Flows(Low))
	}
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct{ from, measured, want float64 }{
		{100, 90, 95}, {100, 98, 100}, {100, 106, 100}, {95, 106, 99.75}, {10.2, 1, 10}, {100, 0, 100},
	} {
		d := NewDevice(100, DefaultRatios)
		d.estimate = c.from
		d.Observe(c.measured, false)
		near(t, fmt.Sprintf("estimate from %g with %g measured", c.from, c.measured), d.Estimate(), c.want, 6)
	}
	d := NewDevice(100, DefaultRatios)
	d.Observe(10, true)
	near(t, "estimate in slow start", d.Estimate(), 100, 6)
}

func TestNothingIsAllocated(t *testing.T) {
	d, f := NewDevice(100, DefaultRatios), NewFlow(10)
	d.Join(High)
	if n := testing.AllocsPerRun(100, func() {
		f.Round(Round{Delivered: 10, Marked: 1, Rate: 30}, d.Target(High))
		d.Observe(f.Measured(), f.SlowStart())
	}); n != 0 {
		t.Errorf("%v allocations for a round trip", n)
	}
}
