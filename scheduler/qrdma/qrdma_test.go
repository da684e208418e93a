package qrdma

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %.9f, expected %g", what, got, want)
	}
}

// before returns the α that one more interval makes after.
func before(after float64) float64 { return (after - gain) / (1 - gain) }

func TestReductionAndRecovery(t *testing.T) {
	line := Line{Rate: 100, Step: 5}
	f := Flow{rate: 40, target: 90, alpha: before(0.5), quiet: 9}
	f.Update(line, true, 0.8)
	near(t, "α", f.Alpha(), 0.5)
	near(t, "RT", f.Target(), 40)
	near(t, "RC", f.Rate(), 24)
	for i, want := range []float64{32, 36, 38, 39, 39.5} {
		f.Update(line, false, 0.8)
		near(t, fmt.Sprintf("RC after %d quiet intervals", i+1), f.Rate(), want)
		near(t, "RT in fast recovery", f.Target(), 40)
	}
	f.Update(line, false, 0.8)
	near(t, "RT behind fast recovery", f.Target(), 45)
	near(t, "RC behind fast recovery", f.Rate(), 42.25)
}

func TestAlpha(t *testing.T) {
	f := Flow{rate: 40, target: 40, alpha: 0.2}
	f.Update(NewLine(100), true, DCQCN)
	near(t, "α after a notification", f.Alpha(), 0.25)
	f.Update(NewLine(100), false, DCQCN)
	near(t, "α after a quiet interval", f.Alpha(), 0.25*15/16)
}

// TestDeficitIsDCQCN: quality above 1 changes nothing.
func TestDeficitIsDCQCN(t *testing.T) {
	a, b := NewFlow(NewLine(100)), NewFlow(NewLine(100))
	for i := range 20 {
		a.Update(NewLine(100), i%3 == 0, 1.7)
		b.Update(NewLine(100), i%3 == 0, DCQCN)
	}
	if a != b {
		t.Errorf("in deficit %+v, by DCQCN %+v", a, b)
	}
}

func TestBounds(t *testing.T) {
	line := NewLine(100)
	f := NewFlow(line)
	near(t, "first rate", f.Rate(), 100)
	for range 50 {
		f.Update(line, true, 0.1)
	}
	near(t, "lowest rate", f.Rate(), 0.1)
	for range 500 {
		f.Update(line, false, 0.1)
	}
	near(t, "highest target", f.Target(), 100)
	near(t, "R_AI", line.Step, 1)
}

func TestQuality(t *testing.T) {
	f := NewFlow(NewLine(100))
	near(t, "quality without a measurement", f.Quality(30), 1)
	f.Measure(100)
	f.Measure(50)
	near(t, "m", f.Measured(), 75)
	near(t, "quality", f.Quality(30), 0.4)
}

func TestNothingIsAllocated(t *testing.T) {
	line := NewLine(100)
	f := NewFlow(line)
	if n := testing.AllocsPerRun(100, func() {
		f.Measure(30)
		f.Update(line, true, f.Quality(20))
	}); n != 0 {
		t.Errorf("%v allocations for an interval", n)
	}
}
