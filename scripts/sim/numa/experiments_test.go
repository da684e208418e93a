package numa

import (
	"math"
	"testing"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}

// TestResponseTimeFormula is formula (5.1) (algorithms C, NUMA cache 6).
func TestResponseTimeFormula(t *testing.T) {
	const size = 512 << 10
	const network = 156_000 - size/portBW // the paper rounds the network's share
	for bandwidth, want := range map[float64]float64{7.1: 339.8, 17.32: 296.3} {
		if got := (responseTime(size, bandwidth) + network) / 1e3; math.Abs(got-want) > 0.1 {
			t.Errorf("512 KiB from %.2f GB/s take %.1f us, expected %.1f", bandwidth, got, want)
		}
	}
}

// TestSeed: the same seed gives the same results, and another does not.
func TestSeed(t *testing.T) {
	of := func(seed uint64) latencies {
		l, err := unloaded(&experiment.Env{Seed: seed}, 512<<10, 512<<10)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if a, b := of(1), of(1); a != b {
		t.Errorf("%+v and %+v from one seed", a, b)
	}
	if a, b := of(1), of(2); a == b {
		t.Errorf("%+v from two seeds", a)
	}
}
