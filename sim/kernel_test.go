package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Events come by time, then class, then age.
func TestKernelOrder(t *testing.T) {
	var k Kernel
	var got []string
	note := func(s string) func() { return func() { got = append(got, fmt.Sprint(k.Now(), s)) } }
	k.At(5, Arrival, note("arrival"))
	k.At(5, BatchTimer, note("batch"))
	k.At(5, TokenTick, note("tick"))
	k.At(5, Conversion, note("conversion"))
	k.At(5, Redistribution, note("redistribution"))
	k.At(5, PeriodStart, note("period"))
	k.At(5, Completion, note("first"))
	k.At(5, Completion, note("second"))
	k.At(3, Arrival, func() {
		k.After(1, Arrival, note("later"))
		k.At(1, Arrival, note("overdue"))
	})
	k.At(9, Completion, note("not yet"))
	k.Run(9)
	want := []string{"3overdue", "4later", "5first", "5second", "5period", "5redistribution", "5conversion", "5tick", "5batch", "5arrival"}
	if !slices.Equal(got, want) || k.Now() != 9 {
		t.Errorf("at %d: %v, expected %v at 9", k.Now(), got, want)
	}
}

// Section C, 7: a station with random arrivals and service times behaves as
// M/M/1: 1/(mu-lambda) = 16.67 us, with 20 us before it 36.67 us.
func TestStationIsMM1(t *testing.T) {
	const lambda, mu, t0, jobs = 100e3, 160e3, 20_000.0, 400_000
	var k Kernel
	r := NewRand(7)
	s := NewStation(&k)
	var sum float64
	var arrive func(left int)
	arrive = func(left int) {
		start := k.Now()
		s.Serve(Exponential(r, 1e9/mu), func() { sum += float64(k.Now()-start) + t0 })
		if left > 1 {
			k.After(Exponential(r, 1e9/lambda), Arrival, func() { arrive(left - 1) })
		}
	}
	arrive(jobs)
	k.Run(math.MaxInt64)
	got, want := sum/jobs/1e3, t0/1e3+1e6/(mu-lambda)
	row := within("C 7", "M/M/1 at 100K of 160K per second, us", "36.67", "%.2f", got, want*0.97, want*1.03)
	judge(t, []Row{row}, nil)
}

// Section C, 6: formula (5.1).
func TestResponseTimeFormula(t *testing.T) {
	const net = 156_000 - 512<<10/portBW // the paper rounds the network's share
	judge(t, []Row{
		within("5.1", "512 KiB from 7.1 GB/s, us", "339.8", "%.1f", (ResponseTime(512<<10, 7.1)+net)/1e3, 339.7, 339.9),
		within("5.1", "512 KiB from 17.32 GB/s, us", "296.3", "%.1f", (ResponseTime(512<<10, 17.32)+net)/1e3, 296.2, 296.4),
	}, nil)
}

func TestZipf(t *testing.T) {
	const n, draws = 5, 200_000
	z := NewZipf(NewRand(1), n, 0.6)
	var count [n]float64
	for range draws {
		count[z.Draw()]++
	}
	for i, weight := range []float64{1, .6598, .5173, .4353, .3807} {
		if got := count[i] / count[0]; math.Abs(got-weight) > 0.02 {
			t.Errorf("rank %d: weight %.3f, expected %.3f", i, got, weight)
		}
	}
}

// Equal seeds give equal runs.
func TestDeterministic(t *testing.T) {
	for range 2 {
		a, err := unloaded(512<<10, 512<<10)
		if err != nil {
			t.Fatal(err)
		}
		b, err := unloaded(512<<10, 512<<10)
		if err != nil || a != b {
			t.Fatalf("%+v and %+v, error %v", a, b, err)
		}
	}
	x, err := saturated(64<<10, true)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := saturated(64<<10, true); err != nil || x != y {
		t.Errorf("%v and %v GB/s, error %v", x, y, err)
	}
}
