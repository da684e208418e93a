package kernel

import (
	"math"
	"testing"
)

// TestStationIsMM1: with random arrivals and service times the mean stay is
// 1/(mu-lambda) = 16.67 us, with 20 us before it 36.67 us (algorithms C, NUMA
// cache 7).
func TestStationIsMM1(t *testing.T) {
	const lambda, mu, t0, jobs = 100e3, 160e3, 20_000.0, 400_000
	var k Kernel
	arrivals, services := NewRand(7, 0), NewRand(7, 1)
	s := NewStation(&k)
	sum, left := 0.0, jobs
	var arrive func()
	arrive = func() {
		start := k.Now()
		s.Serve(int64(services.ExpFloat64()*1e9/mu), func() { sum += float64(k.Now()-start) + t0 })
		if left--; left > 0 {
			k.After(int64(arrivals.ExpFloat64()*1e9/lambda), Arrival, arrive)
		}
	}
	k.After(0, Arrival, arrive)
	k.Drain()
	if got := sum / jobs / 1e3; math.Abs(got-36.67) > 0.03*36.67 {
		t.Errorf("mean stay of %.2f us, expected 36.67 ±3 %%", got)
	}
}

// TestDrain: events that events plan are run too, and time stays at the last.
func TestDrain(t *testing.T) {
	var k Kernel
	var at []int64
	k.After(5, Completion, func() {
		at = append(at, k.Now())
		k.After(7, Arrival, func() { at = append(at, k.Now()) })
	})
	k.Drain()
	if len(at) != 2 || at[0] != 5 || at[1] != 12 || k.Now() != 12 {
		t.Errorf("events at %v, clock at %d, expected 5, 12 and 12", at, k.Now())
	}
}
